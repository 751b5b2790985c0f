"""Draw the validation and test sets that a corpus lacks."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.corpus.directions import join_filter_stats, join_split
from bleuprint.corpus.split import split_folder
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run
from bleuprint.text.parallel import TextFolder


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus = load_resolved().corpus(name)
    workers = environment.workers()
    for part, pair in corpus.pairs(name).items():
        before = TextFolder(paths.folder(part, "filter"), *pair.languages)
        to = paths.folder(part, "split"), paths.filter_stats(part, "split")
        split_folder(part, pair.split, pair.dedup.decontaminate, before, *to, workers)
    if corpus.directions:
        join_filter_stats(name, corpus, "split", join_split(name, corpus))


if __name__ == "__main__":
    run(main)
