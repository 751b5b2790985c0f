"""The command line of the scripts in stages/: a few names, one after the other."""

import argparse

from bleuprint.errors import UserError
from bleuprint.layout import Cell


def names(description: str | None, *wanted: str) -> list[str]:
    """The command line's arguments, one for each name in `wanted`; else usage and status 2."""
    parser = argparse.ArgumentParser(description=description)
    for name in wanted:
        parser.add_argument(name.lower(), metavar=name)
    given = vars(parser.parse_args())
    return [given[name.lower()] for name in wanted]


def cell(description: str | None) -> Cell:
    """The cell named by the arguments SYSTEM CORPUS SEED."""
    system, corpus, seed = names(description, "SYSTEM", "CORPUS", "SEED")
    if not seed.isdecimal():
        raise UserError(f"seed {seed!r} is not a whole number")
    return Cell(system, corpus, int(seed))
