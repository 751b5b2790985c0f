"""Average the last checkpoints of a training."""

import argparse
from pathlib import Path

from bleuprint import errors, settings
from bleuprint.average import average


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("corpus")
    parser.add_argument("seed")
    arguments = parser.parse_args()
    system = settings.load().system(arguments.system)
    models = Path("models", arguments.system, arguments.corpus, arguments.seed)
    average(models / "checkpoints", system.average, models / "averaged")


errors.run(main)
