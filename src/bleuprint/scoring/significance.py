"""Intervals and paired tests of all metrics, as sacreBLEU's --paired-bs and --paired-ar.

One set of resamples, and one of trials, serves every metric, so that all p-values are about the
same samples of lines. A test set is held in memory together with the samples: about 10 bytes per
line for each of the 10,000 trials of approximate randomization.

A unit is a line or a document. Counts are the whole numbers that a metric (metric.py) counts
on each unit.
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
# sacreBLEU's seed.
SEED = 12345
TRIALS = 10_000
SIGNIFICANCE_LEVEL = 0.05
# Of so many resamples, one lies beyond each end of the 95% interval: 2.5%.
_RESAMPLES_PER_ONE_BEYOND = 40


@dataclass(frozen=True)
class PairedTest:
    """The p-values of a difference between two systems.

    The bootstrap (Koehn 2004) resamples the test set; randomization (Riezler and Maxwell 2005)
    swaps lines between the systems and makes fewer assumptions. As in sacreBLEU, randomization
    counts trials with a larger difference, not those with an equal one: for systems that differ in
    one or two lines, its p-value is too small. For shares, equal differences count: with 0 or 1 per
    line most trials are equal to others.

    Attributes:
        bootstrap: p by paired bootstrap.
        randomization: p by approximate randomization.
        standard_error: The standard deviation of the resamples' difference, in points of the
            metric.
    """

    bootstrap: float
    randomization: float
    standard_error: float


def evaluate_metric(
    metric: Metric, statistics: Floats, signature: str, group: str = ""
) -> MetricValue:
    """Return the value of a metric; if it is tested, with its interval and the counts for tests.

    Args:
        metric: The metric.
        statistics: Its counts, (units, counts).
        signature: How it was computed.
        group: The lines that it is about; empty for the metric's own group.
    """
    units = len(statistics)
    if metric.is_share:
        units = int(statistics[:, 1].sum())  # The lines that count.
    value = metric.overall_value(statistics)
    metric_value = untested_value(metric.key, value, units, group or metric.group)
    metric_value["signature"] = signature
    if metric.kind in ("score", "error"):
        ci_low, ci_high = confidence_interval(metric, statistics)
        metric_value["ci_low"] = ci_low
        metric_value["ci_high"] = ci_high
        metric_value["statistics"] = format_statistics(statistics)
    return metric_value


def confidence_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Return the 95% interval of a value.

    For shares it is Wilson's (1927), since all resamples of lines without an error are equal; for
    other metrics the bootstrap's, as in sacreBLEU.

    Args:
        metric: The metric.
        statistics: Its counts, (units, counts).
    """
    if metric.is_share:
        return _wilson_interval(metric, statistics)
    return _bootstrap_interval(metric, statistics)


def _wilson_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Return the 95% interval of a share by Wilson (1927)."""
    from scipy.stats import binomtest  # Takes half a second to load.

    successes, trials = statistics.sum(0)[:2].astype(int)
    ends = binomtest(successes, max(trials, 1)).proportion_ci(method="wilson")
    # The value of the sums that the ends stand for, such as a percentage.
    sums = np.array([(ends.low * trials, trials), (ends.high * trials, trials)])
    low, high = metric.values(sums).tolist()
    return round(low, DIGITS), round(high, DIGITS)


def _bootstrap_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Return the 95% interval of a value by resampling units, computed as in sacreBLEU.

    It is the mean of the resamples plus and minus half the distance of their percentiles, cut at
    the ends of the scale.
    """
    counts = _resampled_counts(len(statistics), RESAMPLES)
    values = list(_resampled_values(metric, statistics, counts))
    if any(isinstance(value, np.float32) for value in values):
        # sacreBLEU returns Python's 0.0 and 100.0 at the ends of the scale, float32 between them.
        values = [np.float32(value) for value in values]
    ranked = sorted(values)
    beyond = len(ranked) // _RESAMPLES_PER_ONE_BEYOND
    center = float(mean(ranked))
    half_width = float(0.5 * (ranked[-1 - beyond] - ranked[beyond]))
    if metric.has_float32_sums:
        center = round(center, DIGITS)
        half_width = round(half_width, DIGITS)
    low = round(center - half_width, DIGITS)
    high = round(center + half_width, DIGITS)
    if metric.has_float32_sums:
        low = max(0.0, low)
    return low, min(metric.highest, high)


def paired_test(metric: Metric, first: Floats, second: Floats) -> PairedTest:
    """Test the second system's difference from the first.

    p is 1 where no resample has a difference: two outputs are equal, or both score 0. sacreBLEU,
    which counts resamples with a difference above 0, would find a significant difference there. p
    is also 1 for a single line, whose resamples are all equal.

    Args:
        metric: The metric.
        first: The first system's counts, (units, counts).
        second: The second system's counts, (units, counts).
    """
    counts = _resampled_counts(len(first), RESAMPLES)
    first_values = np.array(_resampled_values(metric, first, counts))
    second_values = np.array(_resampled_values(metric, second, counts))
    differences = second_values - first_values
    standard_error = round(float(differences.std(ddof=1)), DIGITS)
    if len(first) == 1 or not differences.any():
        return PairedTest(1.0, 1.0, standard_error)
    difference = abs(metric.overall_value(first) - metric.overall_value(second))
    # The bootstrap's null hypothesis: no difference. So sizes are less their mean.
    sizes = np.abs(differences)
    bootstrap = _p_value(sizes - sizes.mean() > difference)
    swapped_sizes = _swapped_differences(metric, first, second)
    if metric.is_share:
        randomization = _p_value(swapped_sizes >= difference)
    else:
        randomization = _p_value(swapped_sizes > difference)
    return PairedTest(bootstrap, randomization, standard_error)


def _resampled_values(metric: Metric, statistics: Floats, counts: Floats) -> Iterable[Any]:
    """Return the value of each resample.

    Args:
        metric: The metric.
        statistics: Its counts, (units, counts).
        counts: How often each resample has each unit, (resamples, units).
    """
    sums = counts @ statistics
    if metric.has_float32_sums:
        return metric.value(sums.astype(np.float32))
    return metric.value(sums)


@lru_cache(maxsize=2)
def _resampled_counts(units: int, resamples: int) -> Floats:
    """Return how often each resample has each unit, (resamples, units), with sacreBLEU's seed."""
    generator = np.random.default_rng(SEED)
    drawn_units = generator.choice(units, size=(resamples, units), replace=True)
    counts = [np.bincount(resample, minlength=units) for resample in drawn_units]
    return np.stack(counts).astype(np.float64)


@lru_cache(maxsize=2)
def _trials(units: int, trials: int) -> Floats:
    """Return which units stay with their system, 1, or are swapped, 0: (trials, units)."""
    generator = np.random.default_rng(SEED)
    return generator.integers(2, size=(trials, units), dtype=bool).astype(np.float64)


def _swapped_differences(metric: Metric, first: Floats, second: Floats) -> Floats:
    """Return the size of the difference in each trial of randomization, (trials,)."""
    # If all units are swapped, the first sums are the second system's. Each unit that stays changes
    # them by its own difference, and the second sums by as much in the other direction.
    changes = _trials(len(first), TRIALS) @ (first - second)
    first_sums = second.sum(0) + changes
    second_sums = first.sum(0) - changes
    return np.abs(metric.values(first_sums) - metric.values(second_sums))


def _p_value(is_more_extreme: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    """Return p: (samples that are more extreme + 1) / (samples + 1), which is never 0."""
    extreme_samples = int(is_more_extreme.sum())
    return round((extreme_samples + 1) / (len(is_more_extreme) + 1), DIGITS)
