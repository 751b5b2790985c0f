"""Drop repeated training pairs, and those that validation or a test set gives away."""

from bleuprint import command, environment, layout
from bleuprint.dedup import Deduplication
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    corpus = load().corpus(name)
    step = Deduplication(
        name,
        corpus.dedup,
        corpus.clean,
        TextFolder(layout.folder(name, "clean"), corpus.source, corpus.target),
        layout.folder(name, "dedup"),
        layout.ledger(name, "dedup"),
    )
    run_step(step, layout.shards(name, "dedup"), work, environment.workers())


if __name__ == "__main__":
    run(main)
