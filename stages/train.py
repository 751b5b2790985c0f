"""Train one system on one corpus with one seed."""

from bleuprint.runtime.reexec import reexec_for_speed

reexec_for_speed()

from bleuprint.pipeline import stage_args
from bleuprint.pipeline.train_stage import train_cell
from bleuprint.runtime.errors import run

if __name__ == "__main__":
    run(lambda: train_cell(stage_args.cell(__doc__)))
