"""Write what the trainings of a system with a seed depend on, whatever weights they start from.

Trainings depend on the folder of this file. For a system that starts from the models of another,
the stage init_weights writes into it, too, and DVC runs the trainings of the other first.
"""

from bleuprint.config.init_from import fresh
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.files import write_json


def main() -> None:
    system, seed = stage_args.names(__doc__, "SYSTEM", "SEED")
    path = fresh(system, int(seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {})


if __name__ == "__main__":
    run_main(main)
