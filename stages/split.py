"""Draw the validation and test sets that a corpus lacks."""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.split import split_folder


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    before = TextFolder(layout.folder(name, "filter"), corpus.source, corpus.target)
    split = layout.folder(name, "split")
    ledger = layout.ledger(name, "split")
    workers = environment.workers()
    split_folder(name, corpus.split, corpus.dedup.overlap, before, split, ledger, workers)


if __name__ == "__main__":
    run(main)
