"""Translate a corpus's test sets with an averaged model, or copy an external system's files."""

import sys

from bleuprint.model.arithmetic import check_portable, restart

restart(*sys.argv[1:3])

from bleuprint.config.experiment import load_resolved
from bleuprint.config.paths import folder
from bleuprint.decoding.copied_translations import copy_translations
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main


def main() -> None:
    run = stage_args.translated_run(__doc__)  # ends here if it is left out
    settings = load_resolved()
    if not settings.is_trained(run.system):
        copy_translations(settings, run)
        return
    from bleuprint.decoding.translate import translate_tests  # loads torch, which takes seconds

    system = settings.system_on(run.system, run.corpus)
    if system.arithmetic == "portable":
        check_portable(run.system)
    model = run.models / "averaged"
    binary, tokens = (folder(run.corpus, stage) for stage in ("binary", "tokens"))
    translate_tests(binary, model, system.decode, run.results, tokens)


if __name__ == "__main__":
    run_main(main)
