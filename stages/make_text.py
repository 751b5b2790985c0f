"""Translate one side of a training text with a trained system."""

from bleuprint.runtime.reexec import reexec_for_speed

reexec_for_speed()

from bleuprint.config.experiment import load_resolved
from bleuprint.pipeline import stage_args
from bleuprint.runtime.errors import run
from bleuprint.serving.made_text import make_text


def main() -> None:
    (name,) = stage_args.names(__doc__, "TEXT")
    make_text(load_resolved(), name)


if __name__ == "__main__":
    run(main)
