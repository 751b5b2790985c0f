"""Score a run's translations of the test sets with BLEU, chrF and the other metrics.

Reads the translations in results/SYSTEM/CORPUS/SEED, the references in data/split/CORPUS, and the
statistics of the test sets in data/test_stats/CORPUS.
Writes results/SYSTEM/CORPUS/SEED/scores.json.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.scoring.score import score_run


def main() -> None:
    """Score the run that the command line names."""
    run = stage_args.parse_scored_run(description=__doc__)
    with show_elapsed_time(f"score {run}"):
        score_run(load_resolved_settings(), run.system, run.corpus, run.seed)


if __name__ == "__main__":
    run_main(main)
