"""The HTML report, reports/index.html: one file that shows all results of an experiment.

document.py puts it together from its sections, one module each, in the order of the page.
"""
