"""Average the weights of the last or best checkpoints of a run.

Reads models/SYSTEM/CORPUS/SEED/checkpoints and the settings `average` of the system.
Writes models/SYSTEM/CORPUS/SEED/averaged.
"""

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.progress import show_elapsed_time
from bleuprint.training.averaging import average_checkpoints


def main() -> None:
    """Average the checkpoints of the run that the command line names."""
    run = stage_args.parse_trained_run(description=__doc__)
    settings = load_resolved_settings().system_on(run.system, run.corpus).average
    with show_elapsed_time(f"average {run}"):
        average_checkpoints(
            run.models_folder / "checkpoints", settings, run.models_folder / "averaged"
        )


if __name__ == "__main__":
    run_main(main)
