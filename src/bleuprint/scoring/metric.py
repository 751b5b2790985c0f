"""A metric: what is counted on each line, and the value of the sums of these counts.

One interval, one pair of tests and one table serve all metrics (significance.py); documents are
groups of lines, whose counts are summed. metrics.py lists the metrics.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.test_sets import SetDescription

DIGITS = 6
# The stage that computes a metric unless it says otherwise.
SCORE = "score"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Texts:
    """The lines of a test set with their translations, and what is known of it.

    `cut`: the lines, from 1, whose translations ended at the maximum length of an output.
    """

    sources: Sequence[str]
    references: Sequence[str]
    hypotheses: Sequence[str]
    corpus: Corpus
    description: SetDescription
    cut: Collection[int] = ()

    @property
    def language(self) -> str:
        """The target language."""
        return self.corpus.target

    @cached_property
    def documents(self) -> list[list[int]]:
        """The lines of each document, by its first line; empty if documents are not known."""
        lines: dict[str, list[int]] = {}
        for line, document in enumerate(self.description.documents or ()):
            lines.setdefault(document, []).append(line)
        return list(lines.values())


@dataclass(frozen=True)
class Agreement:
    """How the human agreement depends on the difference in a metric (human_agreement.py).

    Attributes:
        ceiling: a of the logistic function a / (1 + exp(-b d)) per cent for a difference d, as in
            the mt-thresholds of Kocmi et al. 2024.
        slope: b of this function.
        highest: The last percentage of their table of thresholds; what is above would be
            extrapolated.
    """

    ceiling: float
    slope: float
    highest: float


@dataclass(frozen=True)
class Metric:
    """What is measured of translations.

    `statistics`: whole numbers, a row for each line; None if the metric does not apply.
    `value`: the value of each row of sums. `about`: a sentence or two below its table.
    `kind`: a score has a table, an interval, tests and intervals by document; errors share a table;
    a variant of BLEU, and other figures, are shown but not tested. `highest`: where intervals end.
    `is_share`: 0 or 1 a line, and 1 where it counts, so that the interval is Wilson's, and ties
    count in the randomization test, as in McNemar's. `has_float32_sums`: sums of resamples are
    float32, as sacreBLEU has them. `group`: the units in place of lines. `stage`: what computes it;
    a stage other than score writes STAGE.json. `model_of`: the name of the model in a signature,
    empty for a metric without a model; raises ValueError if the signature is not of this metric.
    `agreement`: the human agreement by the name of the model. `is_beside_bleu`: whether the page
    shows it in the table of BLEU, and says where it contradicts BLEU; `is_on_screen`: whether
    `bleuprint table` shows it without --all.
    """

    key: str
    label: str
    statistics: Callable[[Texts], Any]
    value: Callable[[Any], Sequence[float] | Floats]
    about: str = ""
    signature: Callable[[Texts], str] = lambda _: ""
    kind: Literal["score", "error", "variant", "figure"] = "score"
    digits: int = 1
    highest: float = 100.0
    lower_is_better: bool = False
    is_share: bool = False
    has_float32_sums: bool = False
    group: str = ""
    stage: str = SCORE
    model_of: Callable[[str], str] = lambda _: ""
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    is_beside_bleu: bool = False
    is_on_screen: bool = False

    def agreement_of(self, signature: str) -> Agreement | None:
        """Return the human agreement of scores with a signature; None if it is not known."""
        return self.agreement.get(self.model_of(signature))

    def count(self, texts: Texts) -> Floats | None:
        """The statistics as numbers, a row for each line."""
        counted = self.statistics(texts)
        return None if counted is None else np.array(counted, dtype=np.float64)

    def values(self, sums: Floats) -> Floats:
        """The value of each row of sums."""
        return np.array(self.value(sums))

    def overall_value(self, statistics: Floats) -> float:
        """The value of all lines together."""
        return float(self.values(statistics.sum(0)[None])[0])


def counted_elsewhere(_: Texts) -> None:
    """The statistics of a metric that is not of the texts alone."""


def percentage(sums: Any) -> Floats:
    """The value of a share: of the lines that count, per cent; 0 of none."""
    found, of = np.asarray(sums, dtype=np.float64).T[:2]
    return np.asarray(100 * found / np.maximum(of, 1))


class MetricValue(TypedDict):
    """A metric of a test set, or of a group of its lines, as in scores.json.

    `group` is empty for all lines, `document` if statistics are by document, or names a bucket.
    `units` is the number of lines, documents or words. `ci_low` and `ci_high` are the 95 %
    interval, None where there is none. `statistics`: of each unit whole numbers, separated by
    spaces, for tests.
    """

    metric: str
    group: str
    units: int
    value: float
    ci_low: float | None
    ci_high: float | None
    signature: str
    statistics: list[str]


def untested_value(metric: str, value: float, units: int, group: str = "") -> MetricValue:
    """A value without an interval or a test."""
    return {
        "metric": metric,
        "group": group,
        "units": units,
        "value": round(value, DIGITS),
        "ci_low": None,
        "ci_high": None,
        "signature": "",
        "statistics": [],
    }


def parse_statistics(measured: MetricValue) -> Floats:
    return np.array([line.split() for line in measured["statistics"]], dtype=np.float64)


def format_statistics(statistics: Floats) -> list[str]:
    return [" ".join(map(str, row)) for row in statistics.astype(np.int64).tolist()]
