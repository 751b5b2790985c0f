"""The difference between two systems on a test set, and the p-value of its significance test.

With one seed, the test covers the lines of the test set (scoring/significance.py). With several
seeds, it compares the seeds, and so covers the variance between training runs. An external system
has the same translations for all seeds: see `largest_p_value`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd

from bleuprint.scoring.metric import Metric, MetricValue, parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import PairedTest, paired_test

# The name of a metric, and the group of lines; the group of all lines is the empty string.
MetricKey = tuple[str, str]
# What was measured of a run's translations of a test set.
MetricValues = Mapping[MetricKey, MetricValue]


@dataclass(frozen=True)
class PairedDifference:
    """The difference between two systems in one metric, on one test set.

    Both systems have the same seeds, and the runs with the same seed form a pair.

    Attributes:
        metric: The metric, such as BLEU.
        differences: For each seed, the value of the second system minus that of the first.
        line_tests: For each seed, the significance tests that resample the lines of the test set.
            Empty if the two systems were scored with different signatures, that is, different
            versions or options of the metric, and so cannot be compared.
        are_trained: Whether this experiment trains both systems. Otherwise one of them is a file
            of translations from elsewhere, which is the same file for each seed.
    """

    metric: Metric
    differences: Sequence[float]
    line_tests: Sequence[PairedTest]
    are_trained: bool

    @property
    def mean(self) -> float:
        """The mean difference over the seeds."""
        return fmean(self.differences)

    @property
    def p_value(self) -> float | None:
        """The p-value of the difference; None if the systems cannot be compared.

        If both systems are trained with several seeds, it comes from Student's t-test over the
        seeds. Otherwise, it comes from the lines of the test set: for a share of lines, such as
        those with an output error, from approximate randomization, and for all other metrics from
        the paired bootstrap. An external system is tested against each seed of the other system,
        and the largest of these p-values counts.
        """
        if not self.line_tests:
            return None
        has_several_seeds = len(self.differences) > 1
        if self.are_trained and has_several_seeds:
            return paired_t_test(self.differences)
        if self.metric.is_share:
            p_values = [test.randomization for test in self.line_tests]
        else:
            p_values = [test.bootstrap for test in self.line_tests]
        if not has_several_seeds:
            return p_values[0]
        return largest_p_value(self.differences, p_values)


def paired_differences(
    first_seeds: Sequence[MetricValues],
    second_seeds: Sequence[MetricValues],
    are_trained: bool,
) -> dict[MetricKey, PairedDifference]:
    """Return the difference between two systems in every metric that both were measured by.

    A metric is skipped if a seed of one system lacks it, or if its value has no statistics by line
    or document, from which a test could be computed.

    Args:
        first_seeds: For each seed, the metrics of the first system, usually the baseline.
        second_seeds: The metrics of the second system, with the seeds in the same order.
        are_trained: Whether both systems are trained, and neither is only a file of translations.

    Returns:
        The differences by metric and group of lines.
    """
    differences = {}
    for key in first_seeds[0]:
        seed_pairs = []
        for first, second in zip(first_seeds, second_seeds, strict=True):
            if key in first and key in second:
                seed_pairs.append((first[key], second[key]))
        is_measured_with_each_seed = len(seed_pairs) == len(first_seeds)
        if is_measured_with_each_seed and _have_paired_statistics(seed_pairs):
            metric_name, _ = key
            metric = METRICS[metric_name]
            differences[key] = _paired_difference(metric, seed_pairs, are_trained)
    return differences


def _have_paired_statistics(seed_pairs: Sequence[tuple[MetricValue, MetricValue]]) -> bool:
    """Return whether two systems have statistics of a metric for the same lines or documents.

    A value stores one list of statistics, such as matched n-grams, for each line or document; the
    list is empty if the metric cannot be tested. The number of documents differs if the two
    systems were scored with other information on where documents begin.

    Args:
        seed_pairs: For each seed, the values of both systems.
    """
    counts = set()
    for first, second in seed_pairs:
        counts.add(len(first["statistics"]))
        counts.add(len(second["statistics"]))
    have_equal_counts = len(counts) == 1
    return have_equal_counts and 0 not in counts


def _paired_difference(
    metric: Metric, seed_pairs: Sequence[tuple[MetricValue, MetricValue]], are_trained: bool
) -> PairedDifference:
    """Return the difference in one metric, with a significance test over lines for each seed.

    Nothing is tested if the values have different signatures: then they were computed with
    different versions or options of the metric, and do not compare.

    Args:
        metric: The metric, such as BLEU.
        seed_pairs: For each seed, the values of the first and of the second system.
        are_trained: Whether both systems are trained, and neither is only a file of translations.
    """
    signatures = set()
    differences = []
    for first, second in seed_pairs:
        signatures.add(first["signature"])
        signatures.add(second["signature"])
        differences.append(second["value"] - first["value"])
    line_tests = []
    if len(signatures) == 1:
        for first, second in seed_pairs:
            test = paired_test(metric, parse_statistics(first), parse_statistics(second))
            line_tests.append(test)
    return PairedDifference(metric, differences, line_tests, are_trained)


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the number of tests, by Holm's method (1979).

    The more differences are tested, the likelier one of them is significant by chance. So with
    n tests, the smallest p-value is multiplied by n, the second smallest by n - 1, and so on.

    Args:
        p_values: The p-values of all tests, in any order.

    Returns:
        The corrected p-values, in the order of the arguments.
    """
    uncorrected = pd.Series(list(p_values), dtype=float)
    ascending = uncorrected.sort_values(kind="stable")
    test_count = len(ascending)
    factors = np.arange(test_count, 0, -1)  # n, n - 1, ..., 1
    corrected = ascending * factors
    # The running maximum keeps the order: a larger p-value must not become the smaller one.
    corrected = corrected.cummax()
    corrected = corrected.clip(upper=1.0)
    # Sorting kept each value's position as its index; by it, the first order is restored.
    in_first_order = corrected.reindex(uncorrected.index)
    return list(in_first_order)


def paired_t_test(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Student's paired t-test: is the mean difference 0?

    Args:
        differences: The differences of two systems, one for each of at least two seeds.

    Returns:
        The p-value; 1 if all differences are equal, since without a deviation t is not defined.
    """
    if len(set(differences)) == 1:
        return 1.0
    # stdtr is the distribution function of t. scipy.stats would take half a second to load.
    from scipy.special import stdtr

    seed_count = len(differences)
    standard_error = np.std(differences, ddof=1) / np.sqrt(seed_count)
    t = np.mean(differences) / standard_error
    degrees_of_freedom = seed_count - 1
    one_sided_p_value = stdtr(degrees_of_freedom, -abs(t))
    return float(2 * one_sided_p_value)


def largest_p_value(differences: Sequence[float], p_values: Sequence[float]) -> float:
    """Return the p-value of an external system against all seeds of a trained system.

    An external system has one file of translations, which is tested against the translations of
    each seed. The largest p-value is small only if every seed differs significantly (Berger 1982).

    Args:
        differences: For each seed, the difference between the two systems.
        p_values: For each seed, the p-value of this difference.

    Returns:
        The largest p-value; 1 if the seeds do not agree which system is better.
    """
    signs = set(np.sign(differences))
    do_seeds_agree = len(signs) == 1
    return max(p_values) if do_seeds_agree else 1.0


def format_p_value(p_value: float) -> str:
    """Return a p-value as text with three decimals, such as `p=0.012`, or else `p<0.001`."""
    would_round_to_zero = p_value < 0.0005
    if would_round_to_zero:
        return "p<0.001"
    return f"p={p_value:.3f}"
