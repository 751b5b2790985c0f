"""Clean the text of a corpus: normalize characters, and apply the edits of the setting `clean`.

Reads data/raw/CORPUS.
Writes data/clean/CORPUS/together, and the filtering statistics data/filter_stats/CORPUS/clean.json.

With --index, --shard or --gather it does a part of this work, so that a cluster can process a large
corpus in parallel jobs.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.steps.sharded import run_step_on_pairs
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Clean the corpus, or the shard of it, that the command line names."""
    (corpus_name,), work = stage_args.parse_shard(__doc__, "CORPUS")
    corpus = load_resolved_settings().corpus(corpus_name)
    run_step_on_pairs(Cleaning, corpus_name, corpus, work, environment.worker_count())


if __name__ == "__main__":
    run_main(main)
