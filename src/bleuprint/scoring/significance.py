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
    """Compute a metric over all lines or documents, as scores.json records it.

    Scores and errors also get a 95% interval, and keep their counts, with which systems are
    compared later. Other figures get a value only.

    Args:
        metric: The metric.
        statistics: What it counts on each line or document, (units, counts).
        signature: How it was computed, such as sacreBLEU's signature.
        group: What the units have in common, such as `document`; empty for what the metric says.
    """
    units = len(statistics)
    if metric.is_share:
        # The second count of a line is 1 if the line counts.
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
        statistics: What it counts on each line or document, (units, counts).

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
        statistics: For each line 1 or 0 for the property, and 1 or 0 for whether the line counts.
    """
    # Imported here, since it takes half a second.
    from scipy.stats import binomtest

    lines_with_property = int(statistics[:, 0].sum())
    counted_lines = int(statistics[:, 1].sum())
    # At least 1, which the test needs.
    test = binomtest(lines_with_property, max(counted_lines, 1))
    share = test.proportion_ci(method="wilson")
    # The metric computes its value, such as a percentage, from numbers of lines.
    sums_at_ends = np.array(
        [
            (share.low * counted_lines, counted_lines),
            (share.high * counted_lines, counted_lines),
        ]
    )
    low, high = metric.values(sums_at_ends).tolist()
    return round(low, DIGITS), round(high, DIGITS)


def _bootstrap_interval(metric: Metric, statistics: Floats) -> tuple[float, float]:
    """Compute the 95% interval of a value by the bootstrap, exactly as in sacreBLEU.

    A sample draws as many lines or documents as there are, some of them several times. The interval
    is the mean of the samples' values plus and minus half the distance of their percentiles 2.5 and
    97.5, cut at the ends of the scale.

    Args:
        metric: The metric.
        statistics: What it counts on each line or document, (units, counts).
    """
    unit_counts = _resampled_counts(len(statistics), RESAMPLES)
    values = list(_resampled_values(metric, statistics, unit_counts))
    if any(isinstance(value, np.float32) for value in values):
        # sacreBLEU returns Python's 0.0 and 100.0 at the ends of the scale, float32 between them.
        values = [np.float32(value) for value in values]
    sorted_values = sorted(values)
    values_beyond_end = len(sorted_values) // _RESAMPLES_PER_ONE_BEYOND
    lower_percentile = sorted_values[values_beyond_end]
    upper_percentile = sorted_values[-1 - values_beyond_end]
    center = float(mean(sorted_values))
    half_width = float(0.5 * (upper_percentile - lower_percentile))
    # Metrics of sacreBLEU are rounded before and after the addition, and their scale begins at 0.
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
    swaps lines between the systems. p is 1 if no sample has a difference: the outputs are equal, or
    both score 0. (In that case sacreBLEU would find a significant difference, since it counts the
    samples with a difference above 0.) p is also 1 for a single line, whose samples are all equal.

    Args:
        metric: The metric.
        first: What it counts on each line or document of the first system, (units, counts).
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
    # The null hypothesis of the bootstrap is that there is no difference. So the mean of the sizes
    # is subtracted, as in sacreBLEU.
    sizes = np.abs(differences)
    bootstrap = _p_value(sizes - sizes.mean() > difference)
    sizes_after_swaps = _swapped_differences(metric, first, second)
    if metric.is_share:
        # With 0 or 1 per line, most trials have equal sizes, which must count.
        randomization = _p_value(sizes_after_swaps >= difference)
    else:
        randomization = _p_value(sizes_after_swaps > difference)
    return PairedTest(bootstrap, randomization, standard_error)


def _resampled_values(metric: Metric, statistics: Floats, unit_counts: Floats) -> Iterable[Any]:
    """Compute a metric for each sample of the bootstrap.

    Args:
        metric: The metric.
        statistics: What it counts on each line or document, (units, counts).
        unit_counts: How often each sample contains each unit, (samples, units).
    """
    sums = unit_counts @ statistics
    if metric.has_float32_sums:
        return metric.value(sums.astype(np.float32))
    return metric.value(sums)


@lru_cache(maxsize=2)
def _resampled_counts(units: int, resamples: int) -> Floats:
    """Draw the samples of the bootstrap, with sacreBLEU's seed and so its samples.

    A sample draws as many units, that is, lines or documents, as the test set has. A unit may be
    drawn several times, or not at all.

    Args:
        units: The number of units of the test set.
        resamples: The number of samples.

    Returns:
        How often each sample contains each unit, (samples, units).
    """
    generator = np.random.default_rng(SEED)
    samples = generator.choice(units, size=(resamples, units), replace=True)
    unit_counts = [np.bincount(sample, minlength=units) for sample in samples]
    return np.stack(unit_counts).astype(np.float64)


@lru_cache(maxsize=2)
def _trials(units: int, trials: int) -> Floats:
    """Draw which lines or documents are swapped between two systems, in each trial.

    Args:
        units: The number of lines or documents.
        trials: The number of trials of approximate randomization.

    Returns:
        For each unit 0 if it is swapped, and 1 if it stays, (trials, units).
    """
    generator = np.random.default_rng(SEED)
    return generator.integers(2, size=(trials, units), dtype=bool).astype(np.float64)


def _swapped_differences(metric: Metric, first: Floats, second: Floats) -> Floats:
    """Compute how much two systems differ after some of their lines were swapped, at random.

    Args:
        metric: The metric.
        first: What it counts on each line or document of the first system, (units, counts).
        second: The same for the second system.

    Returns:
        The size of the difference in each trial, (trials,).
    """
    # If all lines were swapped, the sums of the first system would be those of the second. Each
    # line that stays changes them by its own difference, and the sums of the second system by as
    # much in the other direction.
    changes = _trials(len(first), TRIALS) @ (first - second)
    first_sums = second.sum(0) + changes
    second_sums = first.sum(0) - changes
    return np.abs(metric.values(first_sums) - metric.values(second_sums))


def _p_value(is_more_extreme: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    """Return the p-value: the share of samples with a larger difference than the observed one.

    1 is added to both numbers, as in sacreBLEU, so that p is never 0.

    Args:
        is_more_extreme: For each sample whether its difference is larger.
    """
    extreme_samples = int(is_more_extreme.sum())
    samples = len(is_more_extreme)
    return round((extreme_samples + 1) / (samples + 1), DIGITS)
