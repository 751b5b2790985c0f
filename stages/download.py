"""Get the files of a corpus."""

from bleuprint import command, layout
from bleuprint.download import download_corpus
from bleuprint.errors import run
from bleuprint.fetch import source_of_environment
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    raw = TextFolder(layout.folder(name, "raw"), corpus.source, corpus.target)
    source = source_of_environment()
    download_corpus(name, corpus.files, raw, layout.ledger(name, "download"), source)


if __name__ == "__main__":
    run(main)
