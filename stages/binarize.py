"""Turn a corpus into arrays of ids."""

from bleuprint import command, environment, layout
from bleuprint.binarize import Binarizing
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    step = Binarizing.of(name, load().corpus(name))
    run_step(step, layout.shards(name, "binarize"), work, environment.workers())


if __name__ == "__main__":
    run(main)
