"""Train one system on one corpus with one seed."""

import sys

from bleuprint.model.arithmetic import restart

restart(*sys.argv[1:3])

from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main


def main() -> None:
    run = stage_args.trained_run(__doc__)  # ends here if it is left out
    from bleuprint.pipeline.train_stage import train_run  # loads torch, which takes seconds

    train_run(run)


if __name__ == "__main__":
    run_main(main)
