"""Describe a binarized corpus: its statistics, and the BLEU ceiling of its test sets.

The BLEU ceiling is the score that the references reach after a round trip through the vocabulary.

Reads data/split/CORPUS and data/binary/CORPUS.
Writes data/corpus_stats/CORPUS.
"""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.scoring.bleu_ceiling import BLEU_CEILING, write_bleu_ceiling


def main() -> None:
    """Describe the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    binary = BinaryCorpus(paths.corpus_folder(corpus_name, "binary"))
    split_folder = paths.corpus_folder(corpus_name, "split")
    output_folder = paths.corpus_folder(corpus_name, "corpus_stats")
    with show_elapsed_time(f"corpus_stats {corpus_name}"):
        binary.verify()
        statistics = CorpusStatistics.from_corpus(binary)
        statistics.write(output_folder / paths.STATISTICS)
        write_bleu_ceiling(corpus, binary, split_folder, output_folder / BLEU_CEILING)


if __name__ == "__main__":
    run_main(main)
