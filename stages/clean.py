"""Clean the training text of a corpus."""

from bleuprint import command, environment, layout
from bleuprint.clean import Cleaning
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    step = Cleaning.of(name, load().corpus(name))
    run_step(step, layout.shards(name, "clean"), work, environment.workers())


if __name__ == "__main__":
    run(main)
