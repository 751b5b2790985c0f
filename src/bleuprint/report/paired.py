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
    """The difference between two systems in one metric on a test set, and its significance tests.

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

        Which test is used depends on what can vary:

        - Two trained systems with several seeds: Student's t-test over the seeds.
        - One seed: a test that resamples the lines of the test set. It is approximate randomization
          for a share of lines, such as lines with an output error, and the paired bootstrap for all
          other metrics.
        - An external system and a system with several seeds: the test over lines for each seed, and
          of these p-values the largest.
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
        if has_several_seeds:
            return largest_p_value(self.differences, p_values)
        return p_values[0]


def paired_differences(
    first_seeds: Sequence[MetricValues],
    second_seeds: Sequence[MetricValues],
    are_trained: bool,
) -> dict[MetricKey, PairedDifference]:
    """Return the difference between two systems in every metric in which they can be compared.

    A metric is skipped if a run of one system lacks it, or if it has no statistics for each line or
    document: significance tests are computed from them.

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

    The value of a metric stores statistics, such as the number of matched n-grams, for each line or
    document. A test pairs the statistics of two systems, so both must have the same number. The
    numbers of documents differ if the systems were scored with different document boundaries.

    Args:
        seed_pairs: For each seed, the values of both systems.
    """
    counts = set()
    for first, second in seed_pairs:
        counts.add(len(first["statistics"]))
        counts.add(len(second["statistics"]))
    have_equal_counts = len(counts) == 1
    # A metric that cannot be tested stores an empty list.
    has_statistics = 0 not in counts
    return have_equal_counts and has_statistics


def _paired_difference(
    metric: Metric, seed_pairs: Sequence[tuple[MetricValue, MetricValue]], are_trained: bool
) -> PairedDifference:
    """Return the difference in one metric, with a significance test over lines for each seed.

    If the values have different signatures, that is, versions or options of the metric, they cannot
    be compared, and nothing is tested.

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
    n tests, the smallest p-value is multiplied by n, the second smallest by n - 1, and so on. For
    example, 0.04 and 0.01 become 0.04 and 0.02.

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
    # A p-value may now be larger than the next one, which has a smaller factor. The running maximum
    # restores the order.
    corrected = corrected.cummax()
    corrected = corrected.clip(upper=1.0)
    # In pandas, sorted values keep their index, which restores the order of the arguments.
    in_order_of_arguments = corrected.reindex(uncorrected.index)
    return list(in_order_of_arguments)


def paired_t_test(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Student's paired t-test.

    It tests whether the mean difference between two systems is 0.

    Args:
        differences: The differences of two systems, one for each of at least two seeds.

    Returns:
        The p-value; 1 if all differences are equal.
    """
    if len(set(differences)) == 1:
        return 1.0  # Their standard deviation is 0, so t would divide by 0.
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
    each seed. The largest p-value is below 0.05 only if the difference from every seed is
    significant (Berger 1982).

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
    would_be_rounded_to_zero = p_value < 0.0005
    if would_be_rounded_to_zero:
        return "p<0.001"
    return f"p={p_value:.3f}"
