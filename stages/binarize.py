"""Turn a corpus into arrays of ids."""

from bleuprint import command, environment, layout
from bleuprint.binarize import binarize_folder
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    binarize_folder(
        name,
        TextFolder(layout.folder(name, "tokens"), corpus.source, corpus.target),
        layout.codes(name),
        layout.folder(name, "binary"),
        layout.ledger(name, "binarize"),
        environment.workers(),
    )


if __name__ == "__main__":
    run(main)
