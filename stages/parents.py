"""Collect the models that the trainings of a system start from, one for each seed."""

from bleuprint.config.experiment import load_resolved
from bleuprint.config.init_from import parents
from bleuprint.config.paths import Run
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.files import atomic_folder
from bleuprint.training.model_folder import copy_model


def main() -> None:
    name, system, corpus = stage_args.names(__doc__, "NAME", "SYSTEM", "CORPUS")
    settings = load_resolved()
    with atomic_folder(parents(name)) as folder:
        for seed in settings.seeds:
            copy_model(Run(system, corpus, seed), folder / str(seed))


if __name__ == "__main__":
    run_main(main)
