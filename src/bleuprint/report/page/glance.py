"""The result at a glance: on each test set the systems' BLEU with its interval, drawn to scale."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.grid import NONE
from bleuprint.report.system_results import Score, SystemResult
from bleuprint.runtime.html import counted

# The ends of a scale are multiples of this.
_STEP = 5


@dataclass(frozen=True)
class Bar:
    """A system; `low`, `mean` and `high` are per cent of the scale."""

    name: str
    baseline: bool
    best: bool
    score: Score
    low: float
    mean: float
    high: float
    difference: str


@dataclass(frozen=True)
class Glance:
    """A test set: the ends of its scale in BLEU, and its systems."""

    title: str
    low: int
    high: int
    bars: Sequence[Bar]


def glances(results: Sequence[SystemResult]) -> Iterator[Glance]:
    for corpus, test in dict.fromkeys((result.corpus, result.test) for result in results):
        of_test = [result for result in results if (result.corpus, result.test) == (corpus, test)]
        lines = counted(int(of_test[0].first.lines), "sentence")
        yield _glance(f"{corpus}, test set {test} ({lines})", of_test)


def _glance(title: str, results: Sequence[SystemResult]) -> Glance:
    ends = [interval(result.bleu) for result in results]
    low = _STEP * math.floor(min(low for low, _ in ends) / _STEP)
    high = max(low + _STEP, _STEP * math.ceil(max(high for _, high in ends) / _STEP))
    top = max(result.bleu.mean for result in results)
    several = len(results) > 1
    bars = []
    for result, between in zip(results, ends, strict=True):
        score, tested = result.bleu, result.difference
        ends_and_mean = (between[0], score.mean, between[1])
        start, mean, end = (100 * (bleu - low) / (high - low) for bleu in ends_and_mean)
        baseline, best = several and tested is None, several and score.mean == top
        difference = f"{tested.value:+z.1f}{tested.mark or ' n.s.'}" if tested else NONE
        bars.append(Bar(result.name, baseline, best, score, start, mean, end, difference))
    return Glance(title, low, high, bars)


def interval(score: Score) -> tuple[float, float]:
    """The 95 % interval; of several seeds one standard deviation to each side."""
    if score.low is None or score.high is None:
        return score.mean - (score.deviation or 0.0), score.mean + (score.deviation or 0.0)
    return score.low, score.high
