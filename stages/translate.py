"""Translate the test sets of a corpus with a run's averaged model.

For an external system, whose translations come from files, this stage checks and copies the files.

Reads models/SYSTEM/CORPUS/SEED/averaged, data/binary/CORPUS and data/tokens/CORPUS.
Writes the translations to results/SYSTEM/CORPUS/SEED/hypotheses, and translation.json next to them.
"""

import sys

from bleuprint.model.arithmetic import check_portable, restart

# torch reads environment variables when it is imported. So this process restarts with the
# variables of its system's arithmetic before torch is imported.
# Arguments 1 and 2 are SYSTEM and CORPUS.
restart(*sys.argv[1:3])

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import corpus_folder
from bleuprint.decoding.copied_translations import copy_translations
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main


def main() -> None:
    """Translate the test sets for the run that the command line names."""
    # This ends the process if params.yaml excludes the run.
    run = stage_args.parse_scored_run(description=__doc__)
    settings = load_resolved_settings()
    if not settings.is_trained(run.system):
        copy_translations(settings, run)
        return
    # Imported late: loading torch takes seconds.
    from bleuprint.decoding.translate import translate_tests
    from bleuprint.runtime.distributed.gpus import hold_gpus_for_torch

    system = settings.system_on(run.system, run.corpus)
    if system.arithmetic == "portable":
        check_portable(run.system)
    with hold_gpus_for_torch(max_gpus=1):
        translate_tests(
            corpus_folder(run.corpus, "binary"),
            run.models_folder / "averaged",
            system.decode,
            run.results_folder,
            corpus_folder(run.corpus, "tokens"),
        )


if __name__ == "__main__":
    run_main(main)
