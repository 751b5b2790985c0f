"""Clean a part of a corpus: apply the edits of its setting `clean`, such as Unicode normalization.

A part is a training text that `parts` in params.yaml names.

Reads data/part_raw/CORPUS/PART.
Writes data/part_clean/CORPUS/PART, and the filtering statistics
data/filter_stats/CORPUS/parts/PART/clean.json.

With --index, --shard or --gather it does a part of this work, so that a cluster can process a large
text in parallel jobs.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.corpus.parts import cleaning_of_part, corpus_for_part, run_step_on_part
from bleuprint.pipeline import stage_args
from bleuprint.runtime import environment
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Clean the part, or the shard of it, that the command line names."""
    (corpus_name, part), work = stage_args.parse_shard(__doc__, "CORPUS", "PART")
    corpus = corpus_for_part(load_resolved_settings(), corpus_name, part)
    workers = environment.worker_count()
    run_step_on_part(cleaning_of_part, "clean", corpus_name, corpus, part, work, workers)


if __name__ == "__main__":
    run_main(main)
