"""Collect the models that the trainings of a system start from, one for each seed."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import Run
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import whole_folder
from bleuprint.training.init_files import copy_model


def main() -> None:
    (name,) = stage_args.names(__doc__, "SYSTEM")
    settings = load_resolved()
    init_from = settings.system(name).train.init_from
    assert init_from is not None and init_from.cell is not None, "a stage for init_from alone"
    with whole_folder(paths.init_weights(name)) as weights:
        for seed in settings.seeds:
            copy_model(Run(*init_from.cell, seed), weights / str(seed))


if __name__ == "__main__":
    run(main)
