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
    """The difference between two systems in one metric.

    Attributes:
        metric: The metric.
        differences: For each seed, the value of the second system minus that of the first.
        line_tests: For each seed, the tests over lines; empty if the two systems were scored with
            different signatures, and so cannot be compared.
        are_trained: Whether both systems are trained here. If one is external, its translations
            are the same for each seed.
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
        """The p-value of the difference; None if it is not tested.

        With several seeds of trained systems, it comes from the t-test over seeds. Otherwise it
        comes from the lines: from approximate randomization for shares, such as output errors, and
        from the paired bootstrap for all other metrics.
        """
        if not self.line_tests:
            return None
        if self.are_trained and len(self.differences) > 1:
            return paired_t_test(self.differences)
        if self.metric.is_share:
            p_values = [test.randomization for test in self.line_tests]
        else:
            p_values = [test.bootstrap for test in self.line_tests]
        if len(p_values) == 1:
            return p_values[0]
        return largest_p_value(self.differences, p_values)


def paired_differences(
    first_seeds: Sequence[MetricValues],
    second_seeds: Sequence[MetricValues],
    are_trained: bool,
) -> dict[MetricKey, PairedDifference]:
    """Return the difference between two systems in every metric that can be compared.

    Args:
        first_seeds: For each seed, what was measured of the first system, usually the baseline.
        second_seeds: The same of the second system, with the seeds in the same order.
        are_trained: Whether both systems are trained here.
    """
    differences = {}
    for key in first_seeds[0]:
        pairs = []
        for first, second in zip(first_seeds, second_seeds, strict=True):
            if key in first and key in second:
                pairs.append((first[key], second[key]))
        is_measured_with_each_seed = len(pairs) == len(first_seeds)
        if is_measured_with_each_seed and _have_equal_units(pairs):
            metric, _ = key
            differences[key] = _paired_difference(METRICS[metric], pairs, are_trained)
    return differences


def _have_equal_units(pairs: Sequence[tuple[MetricValue, MetricValue]]) -> bool:
    """Return whether both systems have statistics of the same number of lines or documents.

    A metric that is not tested has no statistics. The number of documents differs if the two
    systems were scored with different ideas of where documents begin.
    """
    sizes = set()
    for first, second in pairs:
        sizes.add(len(first["statistics"]))
        sizes.add(len(second["statistics"]))
    return len(sizes) == 1 and sizes != {0}


def _paired_difference(
    metric: Metric, pairs: Sequence[tuple[MetricValue, MetricValue]], are_trained: bool
) -> PairedDifference:
    """Return the difference in one metric, tested over lines with each seed.

    Args:
        metric: The metric.
        pairs: For each seed, the values of the first and of the second system.
        are_trained: Whether both systems are trained here.
    """
    signatures = set()
    differences = []
    for first, second in pairs:
        signatures |= {first["signature"], second["signature"]}
        differences.append(second["value"] - first["value"])
    line_tests = []
    if len(signatures) == 1:
        for first, second in pairs:
            test = paired_test(metric, parse_statistics(first), parse_statistics(second))
            line_tests.append(test)
    return PairedDifference(metric, differences, line_tests, are_trained)


def holm_correction(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979), in the order of the arguments.

    Of n p-values, the smallest is multiplied by n, the next by n - 1, and so on. None becomes
    smaller than the one before it, or larger than 1.
    """
    uncorrected = pd.Series(list(p_values), dtype=float)
    ascending = uncorrected.sort_values(kind="stable")
    factors = np.arange(len(ascending), 0, -1)
    corrected = (ascending * factors).cummax().clip(upper=1.0)
    return list(corrected.reindex(uncorrected.index))


def paired_t_test(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of Student's paired t-test: is the mean difference 0?

    Args:
        differences: The differences of two systems, one for each of at least two seeds.

    Returns:
        The p-value; 1 if all differences are equal, since without a deviation t is not defined.
    """
    if len(set(differences)) == 1:
        return 1.0
    from scipy.special import stdtr  # scipy.stats would take half a second to load

    n = len(differences)
    standard_error = np.std(differences, ddof=1) / np.sqrt(n)
    t = np.mean(differences) / standard_error
    degrees_of_freedom = n - 1
    return float(2 * stdtr(degrees_of_freedom, -abs(t)))


def largest_p_value(differences: Sequence[float], p_values: Sequence[float]) -> float:
    """Return the p-value that one set of translations differs from those of each seed.

    The largest p-value tests the union of the null hypotheses of all seeds (Berger 1982): it is
    small only if every seed differs significantly, in the same direction.

    Args:
        differences: For each seed, the difference from the external system.
        p_values: For each seed, the p-value of this difference.

    Returns:
        The largest p-value; 1 if the seeds do not agree which system is better.
    """
    signs = set(np.sign(differences))
    return max(p_values) if len(signs) == 1 else 1.0


def format_p_value(p_value: float) -> str:
    """Return a p-value with three decimals, as `p=0.012`; a smaller one is `p<0.001`."""
    # Values below 0.0005 would be rounded to 0.000.
    if p_value < 0.0005:
        return "p<0.001"
    return f"p={p_value:.3f}"
