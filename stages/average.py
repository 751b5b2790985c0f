"""Average checkpoints of a training."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.training.averaging import average_checkpoints


def main() -> None:
    run = stage_args.trained_run(__doc__)
    settings = load_resolved().system_on(run.system, run.corpus).average
    with show_elapsed_time(f"average {run}"):
        average_checkpoints(run.models / "checkpoints", settings, run.models / "averaged")


if __name__ == "__main__":
    run_main(main)
