"""Drop the training pairs that a check refuses."""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.filter import Filtering
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    step = Filtering.of(name, load().corpus(name))
    run_step(step, layout.shards(name, "filter"), work, environment.workers())


if __name__ == "__main__":
    run(main)
