"""Translate a corpus's test sets with an averaged model."""

from bleuprint.allocator import keep_memory

keep_memory()

import argparse
from pathlib import Path

from bleuprint import errors, settings
from bleuprint.translate import translate_tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system")
    parser.add_argument("corpus")
    parser.add_argument("seed")
    arguments = parser.parse_args()
    system = settings.load().system(arguments.system)
    cell = Path(arguments.system, arguments.corpus, arguments.seed)
    translate_tests(
        Path("data", arguments.corpus, "binary"),
        Path("models", cell, "averaged"),
        system.decode,
        Path("results", cell, "hypotheses"),
        Path("timings", cell, "translate.json"),
    )


errors.run(main)
