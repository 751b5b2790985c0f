"""Translate one side of a training text with a trained system."""

import sys

from bleuprint.model.arithmetic import check_portable, restart

restart(*sys.argv[2:4])

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run_main
from bleuprint.serving.back_translate import back_translate


def main() -> None:
    name, system, corpus = stage_args.names(__doc__, "TEXT", "SYSTEM", "CORPUS")
    settings = load_resolved()
    if settings.system_on(system, corpus).arithmetic == "portable":
        check_portable(system)
    back_translate(settings, name)


if __name__ == "__main__":
    run_main(main)
