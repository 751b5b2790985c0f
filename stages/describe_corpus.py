"""Statistics of a binarized corpus, and the reachable BLEU of its test sets."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.runtime.progress import working
from bleuprint.scoring.reachable import REACHABLE, write_reachable


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus, output = load_resolved().corpus(name), paths.folder(name, "statistics")
    binary = BinaryCorpus(paths.folder(name, "binary"))
    with working(f"describe_corpus {name}"):
        binary.verify()
        CorpusStatistics.from_corpus(binary).write(output / paths.STATISTICS)
        write_reachable(corpus, binary, paths.folder(name, "split"), output / REACHABLE)


if __name__ == "__main__":
    run(main)
