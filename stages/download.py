"""Get the files of a corpus."""

from bleuprint import command, environment, layout
from bleuprint.download import download_corpus
from bleuprint.errors import run
from bleuprint.fetch import Source
from bleuprint.pairs import TextFolder
from bleuprint.settings import load


def main() -> None:
    (name,) = command.names(__doc__, "CORPUS")
    corpus = load().corpus(name)
    raw = TextFolder(layout.folder(name, "raw"), corpus.source, corpus.target)
    source = Source(environment.mirror(), environment.work() / "downloads")
    download_corpus(name, corpus.files, raw, layout.ledger(name, "download"), source)


if __name__ == "__main__":
    run(main)
