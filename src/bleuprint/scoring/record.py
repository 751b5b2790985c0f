"""scores.json, and comet.json, which has the same form: what was measured of each test set."""

from typing_extensions import TypedDict

from bleuprint.scoring.metric import Measured

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
    metrics: list[Measured]
