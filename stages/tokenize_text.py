"""Tokenize a corpus.

The script is not called tokenize.py, which would hide Python's module of that name.
"""

from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    name, work = stage_args.shard(__doc__)
    corpus = load_resolved().corpus(name)
    run_step_on_pairs(
        Tokenizing,
        name,
        corpus,
        work,
        environment.worker_count(),
        has_summary=False,
    )


if __name__ == "__main__":
    run_main(main)
