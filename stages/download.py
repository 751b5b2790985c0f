"""Fetch the files of a corpus and write its text as lines."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.directions import join_filter_stats
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import source_of_environment
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    source = source_of_environment()
    for part, pair in corpus.pairs(name).items():
        raw = TextFolder(paths.given(part), *pair.languages)
        download_corpus(part, pair.files, raw, paths.filter_stats(part, "download"), source)
    if corpus.directions:
        join_filter_stats(name, corpus, "download")


if __name__ == "__main__":
    run(main)
