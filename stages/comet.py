"""Score a system's translations of a corpus's test sets with COMET."""

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.scoring.comet import score_run_by_comet


def main() -> None:
    run = stage_args.translated_run(__doc__)
    with show_elapsed_time(f"comet {run}"):
        score_run_by_comet(load_resolved(), *run)


if __name__ == "__main__":
    run_main(main)
