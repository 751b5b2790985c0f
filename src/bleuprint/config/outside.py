"""External translations: files that were not made here, scored like a system's.

Part of the settings in `experiment.py`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from bleuprint.runtime.schema import SettingError, Sha256, there_are

# Not read by the stage download, which would run again at each new file below inputs/.
FOLDER = Path("inputs", "outside")
# The folder below results/ of the scores; no system may be called so.
OUTSIDE = "outside"


@dataclass(frozen=True)
class OutsideFile:
    """Translations of a test set, a line for each of its lines: detokenized text in UTF-8.

    `path` is below `inputs/outside/`; `sha256` is of the file.
    """

    path: str
    sha256: Sha256

    def __post_init__(self) -> None:
        path = Path(self.path)
        if ".." in path.parts or FOLDER not in path.parents:
            raise ValueError(f"path is {self.path!r}: files must be below {FOLDER}/")


@dataclass(frozen=True)
class OutsideRow:
    """Translations of one or more `tests` of a corpus that were not made here.

    `about`: what made them, and when; it is printed below the tables.
    """

    about: Annotated[str, MinLen(1)]
    tests: Annotated[dict[str, OutsideFile], MinLen(1)]


# By corpus and name.
OutsideRows = Mapping[str, Mapping[str, OutsideRow]]


def check_outside(
    outside: OutsideRows, tests: Mapping[str, Collection[str]], systems: Collection[str]
) -> None:
    """Raise SettingError at an unknown corpus or test set, and at the name of a system.

    `tests`: the names of each corpus's test sets.
    """
    if outside and OUTSIDE in systems:
        message = f"rename it: results/{OUTSIDE} is the folder of the rows from outside"
        raise SettingError(["systems", OUTSIDE], message)
    for corpus, rows in outside.items():
        if corpus not in tests:
            raise SettingError(["outside", corpus], f"no such corpus; {there_are(corpus, tests)}")
        for name, row in rows.items():
            if name in systems:
                message = "a system has this name: rename the row"
                raise SettingError(["outside", corpus, name], message)
            for test in row.tests:
                if test not in tests[corpus]:
                    message = f"{corpus} has no such test set; {there_are(test, tests[corpus])}"
                    raise SettingError(["outside", corpus, name, "tests", test], message)
