"""Turn a corpus into arrays of ids."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.steps.sharded import run_step
from bleuprint.dataset.binarize import Binarizing
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    name, work = stage_args.shard(__doc__)
    step = Binarizing.for_corpus(name, load_resolved().corpus(name))
    run_step(step, paths.shards(name, "binarize"), work, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
