"""The graph of DVC and Snakemake, and the stages that need more than one package.

May import the packages from runtime to report.
"""
