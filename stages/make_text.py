"""Translate one side of a training text with a trained system."""

import sys

from bleuprint.model.arithmetic import check_portable, restart

restart(*sys.argv[1:2])

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.serving.made_text import make_text


def main() -> None:
    (name,) = stage_args.names(__doc__, "TEXT")
    settings = load_resolved()
    made = settings.made_text(name)
    if settings.system_on(made.system, made.corpus).arithmetic == "portable":
        check_portable(made.system)
    make_text(settings, name)


if __name__ == "__main__":
    run(main)
