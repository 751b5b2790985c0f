"""Fetch the files of a corpus and write its text as lines."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import source_of_environment
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    raw = TextFolder(paths.given(name), corpus.source, corpus.target)
    source = source_of_environment()
    download_corpus(name, corpus.files, raw, paths.ledger(name, "download"), source)


if __name__ == "__main__":
    run(main)
