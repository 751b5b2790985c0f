"""Drop training pairs by length."""

from bleuprint import command, layout
from bleuprint.errors import run
from bleuprint.filter import filter_folder
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    before = TextFolder(layout.folder(name, "dedup"), corpus.source, corpus.target)
    filter_folder(
        name, corpus.filter, before, layout.folder(name, "filter"), layout.ledger(name, "filter")
    )


if __name__ == "__main__":
    run(main)
