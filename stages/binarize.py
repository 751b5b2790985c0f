"""Turn the tokenized text of a corpus into arrays of token ids, the input of training.

Reads data/tokens/CORPUS, and the BPE codes and vocabularies in data/bpe/CORPUS.
Writes data/binary/CORPUS, and the filtering statistics data/filter_stats/CORPUS/binarize.json.

With --index, --shard or --gather it does a part of this work, so that a cluster can process a large
corpus in parallel jobs.
"""

from bleuprint.config import paths
from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.steps.sharded import run_step
from bleuprint.dataset.binarize import Binarizing
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Binarize the corpus, or the shard of it, that the command line names."""
    (corpus_name,), work = stage_args.parse_shard(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    step = Binarizing.for_corpus(corpus_name, corpus)
    shards = paths.shards_folder(corpus_name, "binarize")
    run_step(step, shards, work, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
