"""Drop repeated training pairs, and those that validation or a test set gives away."""

from bleuprint import command, environment, layout
from bleuprint.dedup import Deduplication
from bleuprint.errors import run
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    step = Deduplication.of(name, load().corpus(name))
    run_step(step, layout.shards(name, "dedup"), work, environment.workers())


if __name__ == "__main__":
    run(main)
