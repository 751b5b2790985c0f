"""Draw the validation and test sets that a corpus lacks."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.split import split_folder
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    before = TextFolder(paths.folder(name, "filter"), corpus.source, corpus.target)
    split = paths.folder(name, "split")
    ledger = paths.ledger(name, "split")
    workers = environment.workers()
    split_folder(name, corpus.split, corpus.dedup.decontaminate, before, split, ledger, workers)


if __name__ == "__main__":
    run(main)
