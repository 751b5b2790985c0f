"""Tokenise a corpus.

The script is not called tokenize.py: Python would take it for its own module of that name.
"""

from bleuprint import command, environment, layout
from bleuprint.errors import run
from bleuprint.pairs import TextFolder
from bleuprint.settings import load
from bleuprint.tokenizer import tokenize_folder


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    tokenize_folder(
        name,
        corpus.tokenize,
        corpus.clean.unicode,
        TextFolder(layout.folder(name, "split"), corpus.source, corpus.target),
        layout.folder(name, "tokens"),
        layout.ledger(name, "tokenize"),
        environment.workers(),
    )


if __name__ == "__main__":
    run(main)
