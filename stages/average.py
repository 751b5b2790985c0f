"""Average checkpoints of a training."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.progress import working
from bleuprint.training.averaging import average


def main() -> None:
    cell = stage_args.trained_run(__doc__)
    settings = load_resolved().system_on(cell.system, cell.corpus).average
    with working(f"average {cell}"):
        average(cell.models / "checkpoints", settings, cell.models / "averaged")


if __name__ == "__main__":
    run(main)
