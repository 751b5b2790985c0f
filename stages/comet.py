"""Score a run's translations of the test sets with COMET, a learned metric.

Reads the translations in results/SYSTEM/CORPUS/SEED and the references in data/split/CORPUS.
Writes results/SYSTEM/CORPUS/SEED/comet.json.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.gpu_locks import hold_gpus
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.scoring.comet import score_run_by_comet


def main() -> None:
    """Score the run that the command line names."""
    run = stage_args.parse_scored_run(description=__doc__)
    # The model runs in another Python, which inherits CUDA_VISIBLE_DEVICES.
    with hold_gpus(max_gpus=1), show_elapsed_time(f"comet {run}"):
        score_run_by_comet(load_resolved_settings(), run.system, run.corpus, run.seed)


if __name__ == "__main__":
    run_main(main)
