"""scores.json, and comet.json, which has the same form: what was measured of each test set."""

from pathlib import Path
from typing import TypedDict

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object
from bleuprint.scoring.measure import Measured

SCORES, COMET = "scores.json", "comet.json"


class SetScores(TypedDict):
    """What was measured of one test set; the SHA-256 are of files.

    `scored_with`: the versions of libraries, or the SHA-256 of COMET's model.
    """

    lines: int
    sources: str
    references: str
    hypotheses: str
    scored_with: str
    measures: list[Measured]


def read_scores(path: Path) -> dict[str, SetScores]:
    """The scores by test set; raises UserError if they are missing, damaged or of another form."""
    content = read_object(path)
    for scores in content.values():
        if not (isinstance(scores, dict) and SetScores.__required_keys__ <= scores.keys()):
            raise UserError(f"{path}: was not written by this version; run: make reproduce")
    return content
