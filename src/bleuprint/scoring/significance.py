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
    """Compute a metric over all units, that is, lines or documents, as scores.json records it.

    Scores and errors also get a 95% interval, and their counts are recorded, with which systems are
    compared later. Other figures only get a value.

    Args:
        metric: The metric.
        statistics: What it counts on each unit; shape (units, counts).
        signature: How it was computed, such as sacreBLEU's signature.
        group: What to record as the kind of the units, such as `document`; empty for the kind that
            the metric names.
    """
    units = len(statistics)
    if metric.is_share:
        # The first number of a line is 1 if the line has a property, such as an error. The second
        # one is 1 if the line is counted.
        units = int(statistics[:, 1].sum())
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
    """Compute the 95% confidence interval of a metric's value.

    The bootstrap draws the lines of the test set again and again, as sacreBLEU does. For a share of
    lines, such as those with an error, the interval is Wilson's (1927): if no line has the error,
    all samples of the bootstrap are equal, and its interval would have no width.

    Args:
        metric: The metric.
        statistics: What it counts on each line or document; shape (units, counts).

    Returns:
        The lower and the upper end.
    """
    if metric.is_share:
        return _wilson_interval(metric, statistics)
    return _bootstrap_interval(metric, statistics)


def _wilson_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Compute the 95% interval of a share of lines by Wilson (1927).

    Args:
        metric: The metric, such as the number of lines with an error.
        statistics: Two numbers per line: 1 if it has the property, and 1 if it is counted (else 0).

    Returns:
        The lower and the upper end.
    """
    # Imported here, since it takes half a second.
    from scipy.stats import binomtest

    lines_with_property = int(statistics[:, 0].sum())
    counted_lines = int(statistics[:, 1].sum())
    # Without counted lines, `binomtest` would fail; with 1, the interval is multiplied by 0 below.
    test = binomtest(lines_with_property, max(counted_lines, 1))
    share = test.proportion_ci(method="wilson")
    # The value of the metric, such as a percentage, is computed from numbers of lines. So the ends
    # of the interval are given as numbers of lines, too.
    sums_at_ends = np.array(
        [
            (share.low * counted_lines, counted_lines),
            (share.high * counted_lines, counted_lines),
        ]
    )
    low, high = metric.values(sums_at_ends).tolist()
    return round(low, DIGITS), round(high, DIGITS)


def _bootstrap_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Compute the 95% interval of a value by the bootstrap, with exactly sacreBLEU's rounding.

    Each sample draws as many units (lines or documents) as there are, some of them several times.
    The metric is computed on each sample. The interval is centered at the mean of these values; its
    width is the distance between their percentiles 2.5 and 97.5. It is cut at the ends of the
    scale.

    Args:
        metric: The metric.
        statistics: What it counts on each unit; shape (units, counts).

    Returns:
        The lower and the upper end.
    """
    unit_counts = _resampled_counts(len(statistics), RESAMPLES)
    values = list(_resampled_values(metric, statistics, unit_counts))
    if any(isinstance(value, np.float32) for value in values):
        # For 0 and 100, sacreBLEU returns a Python float, otherwise float32. So that the mean is
        # computed in one precision, all become float32.
        values = [np.float32(value) for value in values]
    sorted_values = sorted(values)
    # 2.5% of the values lie outside of the interval on each side: of 1,000 values, 25. An index of
    # -1 is the last value, so -26 leaves 25 values above it.
    values_outside = len(sorted_values) // _RESAMPLES_PER_ONE_BEYOND
    lower_percentile = sorted_values[values_outside]
    upper_percentile = sorted_values[-1 - values_outside]
    center = float(mean(sorted_values))
    half_width = float(0.5 * (upper_percentile - lower_percentile))
    # Scores of sacreBLEU are rounded before the addition, too, and their scale begins at 0.
    is_of_sacrebleu = metric.has_float32_sums
    if is_of_sacrebleu:
        center = round(center, DIGITS)
        half_width = round(half_width, DIGITS)
    low = round(center - half_width, DIGITS)
    high = round(center + half_width, DIGITS)
    if is_of_sacrebleu:
        low = max(0.0, low)
    return low, min(metric.highest, high)


def paired_test(metric: Metric, first: Floats, second: Floats) -> PairedTest:
    """Test whether two systems differ in a metric, by two paired tests.

    The paired bootstrap draws lines of the test set again and again; approximate randomization
    swaps lines between the systems. Both p-values are 1 if the systems do not differ on any sample,
    because their outputs are equal or both score 0. (There sacreBLEU would report a significant
    difference.) They are also 1 for a test set of one line, as all its samples are equal.

    Args:
        metric: The metric.
        first: What it counts on each line or document of the first system; shape (units, counts).
        second: The same for the second system.
    """
    unit_counts = _resampled_counts(len(first), RESAMPLES)
    first_values = np.array(_resampled_values(metric, first, unit_counts))
    second_values = np.array(_resampled_values(metric, second, unit_counts))
    differences = second_values - first_values
    standard_error = round(float(differences.std(ddof=1)), DIGITS)
    if len(first) == 1 or not differences.any():
        return PairedTest(bootstrap=1.0, randomization=1.0, standard_error=standard_error)
    difference = abs(metric.overall_value(first) - metric.overall_value(second))
    # The p-value of the bootstrap is the share of samples that would differ as much if there were
    # no true difference. Subtracting the mean makes such samples of them, as in sacreBLEU.
    sizes = np.abs(differences)
    bootstrap = _p_value(sizes - sizes.mean() > difference)
    sizes_after_swaps = _swapped_differences(metric, first, second)
    if metric.is_share:
        # Such a difference is a number of lines, so after many swaps it is exactly as large as
        # before. These trials must count.
        randomization = _p_value(sizes_after_swaps >= difference)
    else:
        randomization = _p_value(sizes_after_swaps > difference)
    return PairedTest(bootstrap, randomization, standard_error)


def _resampled_values(metric: Metric, statistics: Floats, unit_counts: Floats) -> Iterable[Any]:
    """Compute a metric for each sample of the bootstrap.

    Args:
        metric: The metric.
        statistics: What it counts on each line or document; shape (units, counts).
        unit_counts: How often each sample contains each unit; shape (samples, units).
    """
    # The sums of the counts over each sample; shape (samples, counts).
    sums = unit_counts @ statistics
    if metric.has_float32_sums:
        return metric.value(sums.astype(np.float32))
    return metric.value(sums)


@lru_cache(maxsize=2)
def _resampled_counts(units: int, resamples: int) -> Floats:
    """Draw the samples of the bootstrap; sacreBLEU draws the same samples, by the same seed.

    A sample draws as many units, that is, lines or documents, as the test set has. A unit may be
    drawn several times, or not at all.

    Args:
        units: The number of units of the test set.
        resamples: The number of samples.

    Returns:
        How often each sample contains each unit; shape (samples, units).
    """
    generator = np.random.default_rng(SEED)
    samples = generator.choice(units, size=(resamples, units), replace=True)
    unit_counts = [np.bincount(sample, minlength=units) for sample in samples]
    return np.stack(unit_counts).astype(np.float64)


@lru_cache(maxsize=2)
def _unswapped_units(units: int, trials: int) -> Floats:
    """Draw, for each trial of approximate randomization, which units are swapped between systems.

    Args:
        units: The number of units, that is, lines or documents.
        trials: The number of trials.

    Returns:
        0 for each unit that is swapped, and 1 for each that stays; shape (trials, units).
    """
    generator = np.random.default_rng(SEED)
    return generator.integers(2, size=(trials, units), dtype=bool).astype(np.float64)


def _swapped_differences(metric: Metric, first: Floats, second: Floats) -> Floats:
    """Compute how much two systems differ in each trial, after a random half of lines is swapped.

    Args:
        metric: The metric.
        first: What it counts on each line or document of the first system; shape (units, counts).
        second: The same for the second system.

    Returns:
        The size of the difference in each trial; shape (trials,).
    """
    # With all lines swapped, the first system has the sums of the second, and the other way round.
    # Each line that stays adds `first - second` to the sums of the first system, and subtracts it
    # from the sums of the second. One matrix product gives these changes for all trials.
    changes = _unswapped_units(len(first), TRIALS) @ (first - second)
    first_sums = second.sum(0) + changes
    second_sums = first.sum(0) - changes
    return np.abs(metric.values(first_sums) - metric.values(second_sums))


def _p_value(is_more_extreme: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    """Return the p-value: the share of samples whose difference is larger than the observed one.

    The observed difference counts as one more such sample, as in sacreBLEU, so that p is never 0.

    Args:
        is_more_extreme: For each sample, whether its difference is larger.
    """
    extreme_samples = int(is_more_extreme.sum())
    samples = len(is_more_extreme)
    return round((extreme_samples + 1) / (samples + 1), DIGITS)
