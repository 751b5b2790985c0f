"""Statistics of a binarized corpus: lengths of sentences, words and tokens, vocabularies."""

from bleuprint.config import paths
from bleuprint.config.experiment import load
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    load().corpus(name)
    corpus = BinaryCorpus(paths.folder(name, "binary"))
    CorpusStatistics.from_corpus(corpus).write(paths.folder(name, "statistics") / paths.STATISTICS)


if __name__ == "__main__":
    run(main)
