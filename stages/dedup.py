"""Drop repeated training pairs, and those that validation or a test set gives away."""

from bleuprint import command, layout
from bleuprint.dedup import dedup_folder
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    before = TextFolder(layout.folder(name, "clean"), corpus.source, corpus.target)
    dedup_folder(name, before, layout.folder(name, "dedup"), layout.ledger(name, "dedup"))


if __name__ == "__main__":
    run(main)
