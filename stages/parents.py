"""Collect the models that the training runs of a system start from, one for each seed.

The system is fine-tuned: it starts from the averaged models of the parent system SYSTEM on CORPUS.

Reads models/SYSTEM/CORPUS.
Writes data/parents/NAME.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.init_from import parents_folder
from bleuprint.config.paths import Run
from bleuprint.pipeline import stage_args
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import run_main
from bleuprint.training.model_folder import copy_model


def main() -> None:
    """Collect the models that a fine-tuned system starts from, one for each seed.

    The command line names the fine-tuned system, then the system and the corpus of the models.
    """
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    name, parent_system, parent_corpus = stage_args.parse_arguments(
        __doc__, "NAME", "SYSTEM", "CORPUS"
    )
    settings = load_resolved_settings()
    with atomic_folder(parents_folder(name)) as partial_folder:
        for seed in settings.seeds:
            parent_run = Run(parent_system, parent_corpus, seed)
            copy_model(parent_run, partial_folder / str(seed))


if __name__ == "__main__":
    run_main(main)
