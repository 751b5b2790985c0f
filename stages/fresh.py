"""Write the first input of a system's trainings, which start from random weights.

The folder also takes the weights of init_weights, so that DVC orders trainings after them.
"""

from bleuprint.config import paths
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.files import whole_folder, write_json


def main() -> None:
    (name,) = stage_args.names(__doc__, "SYSTEM")
    with whole_folder(paths.fresh(name)) as folder:
        write_json(folder / "empty", {})


if __name__ == "__main__":
    run(main)
