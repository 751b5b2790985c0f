"""scores.json, and the files of other stages that score: what was measured of each test set."""

from typing_extensions import TypedDict

from bleuprint.scoring.metric import MetricValue

SCORES_FILE = "scores.json"


class SetScores(TypedDict):
    """What was measured of one test set.

    Attributes:
        lines: The number of its lines.
        sources: The SHA-256 of the file of the sources.
        references: The SHA-256 of the file of the references.
        hypotheses: The SHA-256 of the file of the translations.
        scored_with: The versions of libraries, or the SHA-256 of the model of a metric.
        metrics: The values of all metrics.
    """

    lines: int
    sources: str
    references: str
    hypotheses: str
    scored_with: str
    metrics: list[MetricValue]
