"""Train one system on one corpus with one seed.

Reads data/binary/CORPUS, data/split/CORPUS, and the initial weights in data/starts/SYSTEM/SEED.
Writes models/SYSTEM/CORPUS/SEED/checkpoints, and training.json and curves.json to
results/SYSTEM/CORPUS/SEED. A training that is stopped continues from work/ when it starts again.
"""

import sys

from bleuprint.model.arithmetic import restart

# torch reads environment variables when it is imported. So this process restarts with the
# variables of its system's arithmetic before torch is imported.
# Arguments 1 and 2 are SYSTEM and CORPUS.
restart(*sys.argv[1:3])

from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Train the run that the command line names."""
    # This ends the process if params.yaml excludes the run.
    run = stage_args.parse_trained_run(description=__doc__)
    # Imported late: loading torch takes seconds.
    from bleuprint.pipeline.train_stage import train_run

    train_run(run)


if __name__ == "__main__":
    run_main(main)
