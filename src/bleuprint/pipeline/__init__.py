"""The graph of DVC and Snakemake, and the stages that need more than one package.

graph.py describes the stages of dvc.yaml; stage_runner.py runs them for `bleuprint reproduce`, and
snakemake_run.py for Snakemake. Each script in stages/ begins with stage_args.py.

May import the packages from runtime to report.
"""
