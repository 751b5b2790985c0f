"""Clean the training text of a corpus."""

from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    name, work = stage_args.shard(__doc__)
    corpus = load_resolved().corpus(name)
    run_step_on_pairs(Cleaning, name, corpus, work, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
