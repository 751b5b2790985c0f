"""Put faults into the package, one at a time, and see which ones its tests catch.

    python -m tools.fault_experiment FOLDER --seed 1 --count 60

draws 60 faults for the code of the last commit, spread over all packages: operators, bounds, signs,
keys, dropped lines. FOLDER contains a clone of the project for each job, and faults-SEED.jsonl with
the results so far: after a stop, the same command continues. Faults that the tests did not catch
are printed at the end as diffs: each shows a missing test, unless no user can notice the fault.
"""

import argparse
from pathlib import Path

from bleuprint.cli.options import whole_number
from bleuprint.runtime.errors import run_main
from tools.fault_experiment.experiment import Experiment

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Draw faults as the command line asks, and print those that no test catches."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fault_experiment",
        description="Put faults into the package, one at a time, and see which ones its tests "
        "catch.",
    )
    parser.add_argument("folder", type=Path, help="folder for clones and results")
    parser.add_argument("--seed", type=int, required=True, help="seed of the draw")
    parser.add_argument(
        "--count",
        type=whole_number(1),
        default=60,
        help="number of faults (default: 60)",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number(1),
        default=1,
        help="number of faults that are tried at a time (default: 1)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=30,
        help="time limit of each pytest run (default: 30)",
    )
    arguments = parser.parse_args()
    experiment = Experiment(ROOT, arguments.folder.resolve(), arguments.seed)
    experiment.run(arguments.count, arguments.jobs, seconds_per_run=arguments.minutes * 60)
    print(experiment.summary())


if __name__ == "__main__":
    run_main(main)
