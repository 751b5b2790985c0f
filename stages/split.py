"""Draw the validation and test sets that a corpus does not bring with it.

The sentence pairs of these sets leave the training text.

Reads data/filter/CORPUS.
Writes data/split/CORPUS, and the filtering statistics data/filter_stats/CORPUS/split.json.
"""

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.split import split_folder
from bleuprint.corpus.steps.sharded import run_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main
from bleuprint.text.parallel import TextFolder


def main() -> None:
    """Split the corpus that the command line names."""
    # `__doc__`, the text at the top of this file, is the help; the names are the arguments.
    (corpus_name,) = stage_args.parse_arguments(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    workers = environment.worker_count()

    def split(pair_name: str, pair: Corpus) -> None:
        """Split the text of one language pair of the corpus."""
        filtered_text = TextFolder(paths.corpus_folder(pair_name, "filter"), *pair.languages)
        output_folder = paths.corpus_folder(pair_name, "split")
        filter_stats = paths.filter_stats_file(pair_name, "split")
        split_folder(
            pair_name,
            pair.split,
            pair.dedup.decontaminate,
            filtered_text,
            output_folder,
            filter_stats,
            workers,
        )

    run_on_pairs(corpus_name, corpus, "split", split)


if __name__ == "__main__":
    run_main(main)
