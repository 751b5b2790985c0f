"""Draw the validation and test sets that a corpus lacks."""

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.split import split_folder
from bleuprint.corpus.steps.sharded import run_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    workers = environment.worker_count()

    def split(pair_name: str, pair: Corpus) -> None:
        before = TextFolder(paths.folder(pair_name, "filter"), *pair.languages)
        after = paths.folder(pair_name, "split")
        filter_stats = paths.filter_stats(pair_name, "split")
        decontaminate = pair.dedup.decontaminate
        split_folder(pair_name, pair.split, decontaminate, before, after, filter_stats, workers)

    run_on_pairs(name, corpus, "split", split)


if __name__ == "__main__":
    run_main(main)
