"""Turn a corpus into arrays of ids."""

from bleuprint import command, environment, layout
from bleuprint.binarize import Binarizing
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.step import run_step


def main() -> None:
    name, work = command.shard(__doc__)
    corpus = load().corpus(name)
    step = Binarizing(
        name,
        corpus.tokenize,
        corpus.clean,
        TextFolder(layout.folder(name, "tokens"), corpus.source, corpus.target),
        layout.folder(name, "bpe"),
        layout.folder(name, "binary"),
        layout.ledger(name, "binarize"),
    )
    run_step(step, layout.shards(name, "binarize"), work, environment.workers())


if __name__ == "__main__":
    run(main)
