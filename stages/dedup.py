"""Drop repeated sentence pairs, and training pairs that share a sentence with a held-out set.

Reads data/clean/CORPUS: the cleaned text, and the filtered text of each part.
Writes data/dedup/CORPUS, and the filtering statistics data/filter_stats/CORPUS/dedup.json.

With --index, --shard or --gather it does a part of this work, so that a cluster can process a large
corpus in parallel jobs.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Deduplicate the corpus, or the shard of it, that the command line names."""
    (corpus_name,), work = stage_args.parse_shard(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    run_step_on_pairs(Deduplication, corpus_name, corpus, work, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
