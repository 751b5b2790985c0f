"""scores.json, and the files of other stages that score: what was measured of each test set."""

from typing_extensions import TypedDict

from bleuprint.scoring.metric import MetricValue

SCORES_FILE = "scores.json"


class SetScores(TypedDict):
    """What was measured of one test set; the SHA-256 are of files.

    `scored_with`: the versions of libraries, or the SHA-256 of the model of a metric.
    """

    lines: int
    sources: str
    references: str
    hypotheses: str
    scored_with: str
    metrics: list[MetricValue]
