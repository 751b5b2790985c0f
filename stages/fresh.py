"""Write the file that every training run of a system with a seed depends on.

The file has no content; it exists for the order in which DVC runs stages. A training run depends
on the folder data/starts/SYSTEM/SEED. This stage writes fresh.json into it for every system. If a
system starts from the models of another system, the stage init_weights writes into the same folder,
too. So DVC trains the other system first.
"""

from bleuprint.config.init_from import fresh_start_file
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.json_files import write_json


def main() -> None:
    """Write an empty JSON file for the system and the seed that the command line names.

    Every training depends on such a file, so that DVC has one rule for all trainings.
    """
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    system, seed = stage_args.parse_arguments(__doc__, "SYSTEM", "SEED")
    path = fresh_start_file(system, int(seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {})


if __name__ == "__main__":
    run_main(main)
