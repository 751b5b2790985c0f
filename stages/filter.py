"""Drop the training pairs that fail a check."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.sharded import run_and_print
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run


def main() -> None:
    name, work = stage_args.shard(__doc__)
    step = Filtering.of(name, load_resolved().corpus(name))
    run_and_print(step, paths.shards(name, "filter"), work, environment.workers())


if __name__ == "__main__":
    run(main)
