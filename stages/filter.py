"""Drop the training pairs that a check refuses."""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.filter import Filtering
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    corpus = load().corpus(name)
    step = Filtering(
        name,
        corpus.filter,
        corpus.tokenize,
        TextFolder(layout.folder(name, "dedup"), corpus.source, corpus.target),
        layout.folder(name, "filter"),
        layout.ledger(name, "filter"),
    )
    run_step(step, layout.shards(name, "filter"), work, environment.workers())


if __name__ == "__main__":
    run(main)
