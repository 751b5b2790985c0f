"""Score a system's translations of a corpus's test sets."""

from bleuprint import command
from bleuprint.errors import run
from bleuprint.score import score_cell
from bleuprint.settings import load


def main() -> None:
    score_cell(load(), *command.cell(__doc__))


if __name__ == "__main__":
    run(main)
