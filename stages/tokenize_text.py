"""Tokenize the text of a corpus.

The script is not called tokenize.py, which would hide Python's module of that name.

Reads data/split/CORPUS.
Writes data/tokens/CORPUS, and the filtering statistics data/filter_stats/CORPUS/tokenize.json.

With --index, --shard or --gather it does a part of this work, so that a cluster can process a large
corpus in parallel jobs.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Tokenize the corpus, or the shard of it, that the command line names."""
    (corpus_name,), work = stage_args.parse_shard(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    run_step_on_pairs(
        Tokenizing,
        corpus_name,
        corpus,
        work,
        environment.worker_count(),
        has_summary=False,
    )


if __name__ == "__main__":
    run_main(main)
