"""Average checkpoints of a training."""

from bleuprint import command
from bleuprint.average import average
from bleuprint.errors import run
from bleuprint.settings import load


def main() -> None:
    cell = command.cell(__doc__)
    settings = load().system(cell.system).average
    average(cell.models / "checkpoints", settings, cell.models / "averaged")


if __name__ == "__main__":
    run(main)
