"""Paired differences between two systems on a test set, each with one or several seeds.

With one seed, a difference is tested over the lines of the test set (scoring/significance.py); with
several it is tested over the seeds, which includes the variance between trainings. An
external system has one set of translations: see `largest_p`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd

from bleuprint.scoring.metric import Metric, MetricValue, parse_statistics
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import PairedTest, paired_test

# What was measured on a test set, by metric and group of lines.
OfTest = Mapping[tuple[str, str], MetricValue]


@dataclass(frozen=True)
class PairedDifference:
    """A metric of two systems, and the test of their difference, the second's value minus the
    first's, by seed.

    `tests`: those over lines, by seed; empty if the signatures differ. `p`: see above.
    """

    metric: Metric
    deltas: Sequence[float]
    tests: Sequence[PairedTest]
    trained: bool

    @property
    def difference(self) -> float:
        return fmean(self.deltas)

    @property
    def p(self) -> float | None:
        """None if it is not tested. Of shares by randomization, of other metrics by bootstrap."""
        if not self.tests:
            return None
        if self.trained and len(self.deltas) > 1:
            return paired_t(self.deltas)
        over_lines = [t.randomization if self.metric.is_share else t.bootstrap for t in self.tests]
        return over_lines[0] if len(over_lines) == 1 else largest_p(self.deltas, over_lines)


def paired_differences(
    first: Sequence[OfTest], second: Sequence[OfTest], trained: bool
) -> dict[tuple[str, str], PairedDifference]:
    """Every score and error that two systems have, by metric and group; both by seed.

    `trained`: unless both were trained here, one has the same lines for each seed.
    """
    found = {}
    for key in (key for key in first[0] if key in second[0]):
        pairs = [(a[key], b[key]) for a, b in zip(first, second, strict=True)]
        sizes = {len(each["statistics"]) for pair in pairs for each in pair}
        if len(sizes) > 1 or sizes == {0}:  # other documents; not tested
            continue
        metric, tests = METRICS[key[0]], list[PairedTest]()
        if len({each["signature"] for pair in pairs for each in pair}) == 1:
            tests = [
                paired_test(metric, parse_statistics(a), parse_statistics(b)) for a, b in pairs
            ]
        deltas = [after["value"] - before["value"] for before, after in pairs]
        found[key] = PairedDifference(metric, deltas, tests, trained)
    return found


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979), in the order given.

    The smallest of n is multiplied by n, the next by n - 1, and so on; none becomes smaller than
    the one before it, or larger than 1.
    """
    given = pd.Series(list(values), dtype=float)
    ranked = given.sort_values(kind="stable")
    factors = np.arange(len(ranked), 0, -1)
    return list((ranked * factors).cummax().clip(upper=1.0).reindex(given.index))


def paired_t(differences: Sequence[float]) -> float:
    """The two-sided p-value that the mean of `differences`, two or more, is 0 (Student's t).

    It is 1 if all differences are the same number: without a deviation, nothing can be tested.
    """
    if len(set(differences)) == 1:
        return 1.0
    from scipy.special import stdtr  # scipy.stats would take half a second to load

    n = len(differences)
    t = np.mean(differences) / (np.std(differences, ddof=1) / np.sqrt(n))
    return float(2 * stdtr(n - 1, -abs(t)))


def largest_p(differences: Sequence[float], values: Sequence[float]) -> float:
    """The p-value that one set of translations is better, or worse, than those of every seed.

    `values` are those of its difference from each seed. The largest of them tests the union of
    their null hypotheses (Berger 1982); it is 1 if the differences do not agree which is better.
    """
    return max(values) if len(set(np.sign(differences))) == 1 else 1.0


def p_text(p: float) -> str:
    """p=0.012; p<0.001 instead of 0.000."""
    return "p<0.001" if p < 0.0005 else f"p={p:.3f}"
