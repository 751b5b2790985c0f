"""Clean the training text of a corpus."""

from bleuprint import command, layout
from bleuprint.clean import clean_folder
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    clean_folder(
        name,
        corpus.clean,
        list(corpus.files.train),
        list(corpus.files.valid),
        TextFolder(layout.folder(name, "raw"), corpus.source, corpus.target),
        layout.folder(name, "clean"),
        layout.ledger(name, "clean"),
    )


if __name__ == "__main__":
    run(main)
