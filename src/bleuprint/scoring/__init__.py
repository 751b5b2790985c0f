"""Scores of translations by sacreBLEU and COMET, and the statistics of their differences.

Start with score.py, the stage. metric.py defines what a metric is, metrics.py lists all metrics,
and significance.py tests differences.

May import the packages from runtime to decoding.
"""
