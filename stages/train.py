"""Train one system on one corpus with one seed."""

import sys

from bleuprint.model.arithmetic import restart

restart(*sys.argv[1:3])

from bleuprint.pipeline import stage_args
from bleuprint.pipeline.train_stage import train_cell
from bleuprint.runtime.errors import run

if __name__ == "__main__":
    run(lambda: train_cell(stage_args.cell(__doc__)))
