"""Intervals and paired tests of all metrics, as sacreBLEU's --paired-bs and --paired-ar.

One set of resamples, and one of trials, serves every metric, so that their p-values are of the
same lines. A test set is held in memory together with the samples: about 10 bytes a line for each
of the 10,000 trials of approximate randomization.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import mean
from typing import Any

import numpy as np

from bleuprint.scoring.metric import (
    DIGITS,
    Floats,
    Metric,
    MetricValue,
    format_statistics,
    untested_value,
)

RESAMPLES = 1000
SEED = 12345
TRIALS = 10_000
SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True)
class PairedTest:
    """p-values of a difference by paired bootstrap and approximate randomization.

    The bootstrap (Koehn 2004) resamples the test set; randomization (Riezler and Maxwell 2005)
    swaps lines between the systems and makes fewer assumptions. As in sacreBLEU, randomization
    counts trials with a larger difference, not those with an equal one: for systems that differ in
    one or two lines, its p-value is too small. Of shares, equal ones count: with 0 or 1 a line most
    trials are equal to others. `standard_error` is the standard deviation of the resamples'
    difference, in points of the metric.
    """

    bootstrap: float
    randomization: float
    standard_error: float


def evaluate_metric(
    metric: Metric, statistics: Floats, signature: str, group: str = ""
) -> MetricValue:
    """The value of a metric. If it is tested, also its interval and the counts for the tests."""
    units = int(statistics[:, 1].sum()) if metric.is_share else len(statistics)
    found = untested_value(
        metric.key, metric.overall_value(statistics), units, group or metric.group
    )
    found["signature"] = signature
    if metric.kind in ("score", "error"):
        found["ci_low"], found["ci_high"] = confidence_interval(metric, statistics)
        found["statistics"] = format_statistics(statistics)
    return found


def confidence_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """The 95% interval of a value.

    As sacreBLEU has it: the mean of the resamples plus and minus half the distance of their
    percentiles, cut at the ends of the scale. Of a share by Wilson (1927), since all resamples of
    lines without an error are alike.
    """
    if metric.is_share:
        from scipy.stats import binomtest  # takes half a second to load

        found, of = statistics.sum(0)[:2].astype(int)
        ends = binomtest(found, max(of, 1)).proportion_ci(method="wilson")
        low, high = metric.values(np.array([(end * of, of) for end in ends])).tolist()
        return round(low, DIGITS), round(high, DIGITS)
    values = list(_resampled(metric, statistics, _resampled_counts(len(statistics), RESAMPLES)))
    if any(isinstance(each, np.float32) for each in values):  # 0 and 100 are of another type
        values = [np.float32(each) for each in values]
    ranked = sorted(values)
    cut = len(ranked) // 40
    middle, half = float(mean(ranked)), float(0.5 * (ranked[-1 - cut] - ranked[cut]))
    if metric.has_float32_sums:
        middle, half = round(middle, DIGITS), round(half, DIGITS)
    low, high = round(middle - half, DIGITS), round(middle + half, DIGITS)
    return (max(0.0, low) if metric.has_float32_sums else low), min(metric.highest, high)


def paired_test(metric: Metric, first: Floats, second: Floats) -> PairedTest:
    """The test of the second system's difference from the first, by their statistics.

    p is 1 where no sample has a difference, as of the same lines or of two scores of 0, of which
    sacreBLEU, counting samples with a difference above 0, would say that they differ significantly;
    and for a single line, whose samples are all the same.
    """
    counts = _resampled_counts(len(first), RESAMPLES)
    one, other = (np.array(_resampled(metric, each, counts)) for each in (first, second))
    differences = other - one
    error = round(float(differences.std(ddof=1)), DIGITS)
    if len(first) == 1 or not differences.any():
        return PairedTest(1.0, 1.0, error)
    difference = abs(metric.overall_value(first) - metric.overall_value(second))
    sampled, swapped = np.abs(differences), _swapped(metric, first, second)
    bootstrap = _p_value(sampled - sampled.mean() > difference)
    randomization = _p_value(swapped >= difference if metric.is_share else swapped > difference)
    return PairedTest(bootstrap, randomization, error)


def _resampled(metric: Metric, statistics: Floats, counts: Floats) -> Iterable[Any]:
    """The value of each resample; `statistics`: a row for each line."""
    sums = counts @ statistics
    return metric.value(sums.astype(np.float32) if metric.has_float32_sums else sums)


@lru_cache(maxsize=2)
def _resampled_counts(lines: int, resamples: int) -> Floats:
    """How often each resample (row) has each line, with sacreBLEU's seed."""
    drawn = np.random.default_rng(SEED).choice(lines, size=(resamples, lines), replace=True)
    return np.stack([np.bincount(each, minlength=lines) for each in drawn]).astype(np.float64)


@lru_cache(maxsize=2)
def _trials(lines: int, trials: int) -> Floats:
    """For each trial (row), 1 where a line stays with its system and 0 where it is swapped."""
    generator = np.random.default_rng(SEED)
    return generator.integers(2, size=(trials, lines), dtype=bool).astype(np.float64)


def _swapped(metric: Metric, first: Floats, second: Floats) -> Floats:
    """The size of the difference in each trial of randomization."""
    kept = _trials(len(first), TRIALS) @ (first - second)
    one, other = kept + second.sum(0), first.sum(0) - kept
    return np.abs(metric.values(one) - metric.values(other))


def _p_value(above: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    """(samples above the difference + 1) / (samples + 1), which is never 0."""
    return round((int(above.sum()) + 1) / (len(above) + 1), DIGITS)
