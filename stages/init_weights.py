"""Copy the model that the training runs of a system with a seed start from.

Reads data/parents/SYSTEM/SEED, one of the models that the stage parents has collected.
Writes data/starts/SYSTEM/SEED/weights.
"""

import shutil

from bleuprint.config.init_from import init_weights_folder, parents_folder
from bleuprint.pipeline import stage_args
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Copy the model that a fine-tuned system starts from, for the seed on the command line."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    system, seed = stage_args.parse_arguments(__doc__, "SYSTEM", "SEED")
    model_folder = parents_folder(system) / seed
    with atomic_folder(init_weights_folder(system, int(seed))) as partial_folder:
        shutil.copytree(model_folder, partial_folder, dirs_exist_ok=True)


if __name__ == "__main__":
    run_main(main)
