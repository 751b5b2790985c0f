"""Take the model that the trainings of a system with a seed start from."""

import shutil

from bleuprint.config.init_from import init_weights, parents
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.files import atomic_folder


def main() -> None:
    system, seed = stage_args.names(__doc__, "SYSTEM", "SEED")
    with atomic_folder(init_weights(system, int(seed))) as folder:
        shutil.copytree(parents(system) / seed, folder, dirs_exist_ok=True)


if __name__ == "__main__":
    run_main(main)
