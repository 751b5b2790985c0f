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

# Values are rounded to this many decimal places.
DIGITS = 6
# A score of a line, such as 0.83, is counted in millionths, since counts are whole numbers.
MILLIONTHS = 10**6
# The stage that computes a metric unless the metric names another one.
SCORE = "score"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TranslatedSet:
    """The lines of a test set with their translations, and what is known of the set.

    Attributes:
        sources: The source lines.
        references: The reference lines.
        hypotheses: The translations, parallel to both.
        corpus: The settings of the corpus.
        description: Lengths, word frequencies and documents of the test set.
        cut: The lines, from 1, whose translations ended at the maximum length of an output.
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
        """For each document the indices of its lines; empty if the set has no documents.

        Documents are in the order of their first lines.
        """
        lines_by_document: dict[str, list[int]] = {}
        # The description contains the name of the document of each line, or None.
        for line, document in enumerate(self.description.documents or ()):
            lines_by_document.setdefault(document, []).append(line)
        return list(lines_by_document.values())


@dataclass(frozen=True)
class Agreement:
    """How the human agreement depends on the difference in a metric (human_agreement.py).

    Attributes:
        ceiling: a of the logistic function a / (1 + exp(-b d)) percent for a difference d, as in
            the mt-thresholds of Kocmi et al. 2024.
        slope: b of this function.
        highest: The last percentage of their table of thresholds; what is above would be
            extrapolated.
    """

    ceiling: float
    slope: float
    highest: float


def _empty_text(_: object) -> str:
    """Return the signature of a metric without one, or the model of a metric without one."""
    return ""


@dataclass(frozen=True)
class Metric:
    """A metric of translations.

    Attributes:
        label: Its name in tables.
        statistics: Counts whole numbers on each line of a test set: a row of them for each line;
            None if the metric does not apply.
        value: Computes the value of each row of sums of these counts.
        key: Its name in results. A metric of own code gets the name of its module.
        about: A sentence or two below its table.
        signature: Returns how the metric was computed.
        kind: A score has a table, an interval, tests, and intervals by document; errors share a
            table; variants of BLEU, and other figures, are shown but not tested.
        digits: The decimal places in tables.
        highest: The end of the scale, beyond which no interval reaches.
        lower_is_better: Whether a lower value is better.
        is_share: Whether the counts of a line are 0 or 1, and 1 if the line counts at all. Then the
            interval is Wilson's, and ties count in the randomization test, as in McNemar's.
        has_float32_sums: Whether sums of resamples are float32, as in sacreBLEU.
        group: The units that are counted, where they are not lines.
        stage: The stage that computes it. A stage other than score writes STAGE.json.
        model_of: Returns the name of the model in a signature; empty for a metric without a model.
            Raises ValueError if the signature is not of this metric.
        agreement: The human agreement by the name of the model.
        is_beside_bleu: Whether the HTML report shows it in the table of BLEU, and says where it
            contradicts BLEU.
        is_on_screen: Whether `bleuprint table` shows it without --all.
        own_module: For a metric in own/, the name of its module with the fingerprint of the code;
            empty for built-in metrics. The metric's import sets it.
    """

    label: str
    statistics: Callable[[TranslatedSet], Any]
    value: Callable[[Any], Sequence[float] | Floats]
    key: str = ""
    about: str = ""
    signature: Callable[[TranslatedSet], str] = _empty_text
    kind: Literal["score", "error", "variant", "figure"] = "score"
    digits: int = 1
    highest: float = 100.0
    lower_is_better: bool = False
    is_share: bool = False
    has_float32_sums: bool = False
    group: str = ""
    stage: str = SCORE
    model_of: Callable[[str], str] = _empty_text
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    is_beside_bleu: bool = False
    is_on_screen: bool = False
    own_module: str = ""

    def agreement_of(self, signature: str) -> Agreement | None:
        """Return the human agreement of scores with a signature; None if it is not known."""
        return self.agreement.get(self.model_of(signature))

    def count(self, test_set: TranslatedSet) -> Floats | None:
        """Count what the metric needs on each line, such as n-grams and their matches for BLEU.

        Returns:
            An array of shape (lines, counts per line); None if the metric does not apply to the
            test set.
        """
        counts = self.statistics(test_set)
        return None if counts is None else np.array(counts, dtype=np.float64)

    def values(self, sums: Floats) -> Floats:
        """Compute the value of the metric for each of several groups of lines.

        Args:
            sums: For each group, the sums of the counts of its lines; shape (groups, counts).

        Returns:
            The value of each group; shape (groups,).
        """
        return np.array(self.value(sums))

    def overall_value(self, statistics: Floats) -> float:
        """Compute the value of all lines together, from the sums of their counts.

        Args:
            statistics: The counts of each line; shape (lines, counts).
        """
        sums = statistics.sum(0)
        one_row = sums[np.newaxis]
        (value,) = self.values(one_row)
        return float(value)


def counted_elsewhere(_: TranslatedSet) -> None:
    """Return no counts: for metrics that need more than the lines of a test set."""


def first_sum(sums: Floats) -> Floats:
    """Return the first number of each row of sums, (rows, counts): the value of a plain count."""
    return sums[:, 0]


def percentage(sums: Any) -> Floats:
    """Return the percentage of lines that have a property, such as an error, for groups of lines.

    Args:
        sums: A row for each group. Its first two numbers are how many lines have the property, and
            how many lines count at all.

    Returns:
        A percentage for each group; 0 for a group in which no line counts.
    """
    table = np.asarray(sums, dtype=np.float64)
    lines_with_property = table[:, 0]
    counted_lines = table[:, 1]
    # At least 1, so that a group without lines gives 0 / 1 instead of 0 / 0.
    return np.asarray(100 * lines_with_property / np.maximum(counted_lines, 1))


def mean_of_millionths(sums: Any) -> Floats:
    """Compute the mean score of the lines in percent, for groups of lines.

    Args:
        sums: A row for each group, with two numbers: the sum of the scores in millionths, and the
            number of lines that count.

    Returns:
        The mean for each group: 100 if each line has the score 1, and 0 if no line counts.
    """
    table = np.asarray(sums, dtype=np.float64)
    score_millionths = table[:, 0]
    counted_lines = table[:, 1]
    # At least 1, so that a group without lines gives 0 / 1 instead of 0 / 0.
    mean_millionths = score_millionths / np.maximum(counted_lines, 1)
    # Divided by 1,000,000, the mean would be about 1. Divided by 10,000, it is in percent.
    return np.asarray(mean_millionths / (MILLIONTHS // 100))


class MetricValue(TypedDict):
    """The value of a metric for a test set, or for a group of its lines, as in scores.json.

    Attributes:
        metric: The key of the metric.
        group: Empty for all lines, `document` if statistics are by document, or the name of a
            bucket, such as length 11-20.
        units: The number of lines, documents or words.
        value: The value.
        ci_low: The lower end of the 95% interval; None without an interval.
        ci_high: The upper end.
        signature: How the metric was computed.
        statistics: For tests: whole numbers for each unit, separated by spaces.
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
    """Return the value of a metric as scores.json records it, without an interval and tests.

    Args:
        metric: The key of the metric, such as `bleu`.
        value: The value.
        units: The number of lines, documents or words that it was computed from.
        group: What these have in common, such as `length 11-20`; empty for all lines.
    """
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


def parse_statistics(metric_value: MetricValue) -> Floats:
    """Return the statistics of a value as numbers, (units, counts)."""
    rows = [row.split() for row in metric_value["statistics"]]
    return np.array(rows, dtype=np.float64)


def format_statistics(statistics: Floats) -> list[str]:
    """Return statistics (units, counts) as text: one row for each unit."""
    return [" ".join(map(str, row)) for row in statistics.astype(np.int64).tolist()]
