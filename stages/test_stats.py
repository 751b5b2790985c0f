"""Describe the test sets of a corpus: lengths, documents, and how rare their words are.

Reads data/raw/CORPUS/given, data/split/CORPUS and data/tokens/CORPUS.
Writes data/test_stats/CORPUS.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.test_sets import describe_test_sets
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time


def main() -> None:
    """Describe the test sets of the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    with show_elapsed_time(f"test_stats {corpus_name}"):
        describe_test_sets(corpus_name, corpus)


if __name__ == "__main__":
    run_main(main)
