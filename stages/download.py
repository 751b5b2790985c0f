"""Download the files of a corpus, check their checksums, and extract the text as lines.

Reads the addresses or local paths in the corpus's settings `files`.
Writes data/raw/CORPUS/given, and the filtering statistics data/filter_stats/CORPUS/download.json.
"""

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.download.download import download_corpus
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.steps.sharded import run_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.text.parallel import TextFolder


def main() -> None:
    """Download the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    source = downloads_of_environment()

    def download(pair_name: str, pair: Corpus) -> None:
        """Download the text of one language pair of the corpus."""
        raw_text = TextFolder(paths.download_folder(pair_name), *pair.languages)
        filter_stats = paths.filter_stats_file(pair_name, "download")
        files = pair.files.prepared_together()
        download_corpus(pair_name, files, raw_text, filter_stats, source)

    run_on_pairs(corpus_name, corpus, "download", download)


if __name__ == "__main__":
    run_main(main)
