"""Translate one side of a training text with a trained system."""

import sys

from bleuprint.model.arithmetic import check_portable, restart

restart(*sys.argv[1:2])

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.serving.back_translate import back_translate


def main() -> None:
    (name,) = stage_args.names(__doc__, "TEXT")
    settings = load_resolved()
    made = settings.synthetic_text(name)
    if settings.system_on(made.system, made.corpus).arithmetic == "portable":
        check_portable(made.system)
    back_translate(settings, name)


if __name__ == "__main__":
    run(main)
