"""Score a system's translations of a corpus's test sets."""

import argparse

from bleuprint.errors import run
from bleuprint.score import score_cell
from bleuprint.settings import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("corpus")
    parser.add_argument("seed", type=int)
    arguments = parser.parse_args()
    score_cell(load(), arguments.system, arguments.corpus, arguments.seed)


if __name__ == "__main__":
    run(main)
