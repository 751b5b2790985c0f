"""Collect what the trainings of a row of `tuned` start from."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import write_json
from bleuprint.training.start_files import collect


def main() -> None:
    (name,) = stage_args.names(__doc__, "SYSTEM")
    settings = load_resolved()
    if name in (settings.sweeps or ()):  # a stage for DVC: the rows of its `over` have their own
        for seed in map(str, settings.seeds):
            write_json(paths.start(name) / seed / "empty", {})
        return
    start = settings.system(name).train.from_
    assert start is not None and start.cell is not None, "a stage for each row of tuned alone"
    collect(*start.cell, settings.seeds, paths.start(name))


if __name__ == "__main__":
    run(main)
