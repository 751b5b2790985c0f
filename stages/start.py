"""Collect what the trainings of a row of `tuned` start from."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import Cell
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import whole_folder
from bleuprint.training.start_files import copy_model


def main() -> None:
    (name,) = stage_args.names(__doc__, "SYSTEM")
    settings = load_resolved()
    with whole_folder(paths.start(name)) as starts:
        for seed in map(str, settings.seeds):
            start = settings.system(name).train.from_
            assert start is not None and start.cell is not None, "a stage for rows of tuned alone"
            copy_model(Cell(*start.cell, int(seed)), starts / seed)


if __name__ == "__main__":
    run(main)
