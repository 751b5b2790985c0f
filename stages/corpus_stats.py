"""Statistics of a binarized corpus, and the BLEU ceiling of its test sets."""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.scoring.bleu_ceiling import BLEU_CEILING, write_bleu_ceiling


def main() -> None:
    (name,) = stage_args.names(__doc__, "CORPUS")
    corpus, output = load_resolved().corpus(name), paths.folder(name, "corpus_stats")
    binary = BinaryCorpus(paths.folder(name, "binary"))
    with show_elapsed_time(f"corpus_stats {name}"):
        binary.verify()
        CorpusStatistics.from_corpus(binary).write(output / paths.STATISTICS)
        write_bleu_ceiling(corpus, binary, paths.folder(name, "split"), output / BLEU_CEILING)


if __name__ == "__main__":
    run_main(main)
