"""Describe a corpus's test sets: lengths, documents, and how rare their words are."""

from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.test_sets import describe_test_sets
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    with show_elapsed_time(f"test_stats {name}"):
        describe_test_sets(name, corpus)


if __name__ == "__main__":
    run_main(main)
