"""Fetch the files of a corpus and write its text as lines."""

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.steps.sharded import run_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    source = downloads_of_environment()

    def download(pair_name: str, pair: Corpus) -> None:
        raw = TextFolder(paths.given(pair_name), *pair.languages)
        filter_stats = paths.filter_stats(pair_name, "download")
        download_corpus(pair_name, pair.files, raw, filter_stats, source)

    run_on_pairs(name, corpus, "download", download)


if __name__ == "__main__":
    run_main(main)
