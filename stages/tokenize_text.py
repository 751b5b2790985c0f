"""Tokenise a corpus.

The script is not called tokenize.py: Python would take it for its own module of that name.
"""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.step import run_step
from bleuprint.tokenize import Tokenizing


def main() -> None:
    name, work = command.shard(__doc__)
    step = Tokenizing.of(name, load().corpus(name))
    run_step(step, layout.shards(name, "tokenize"), work, environment.workers())


if __name__ == "__main__":
    run(main)
