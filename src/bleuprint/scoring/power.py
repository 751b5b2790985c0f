"""Which differences a test set or a number of seeds shows.

Power is the probability that a two-sided test at SIGNIFICANCE_LEVEL finds a true difference. Over
lines it is computed from the paired bootstrap's standard error by the normal approximation; over
seeds, for the paired t-test, by the noncentral t distribution. (scipy.stats would take half a
second to load.)
"""

import math
from statistics import NormalDist

from bleuprint.scoring.significance import SIGNIFICANCE_LEVEL

POWER = 0.8


def detectable_difference(standard_error: float) -> float:
    """The difference that the lines of the test set show with POWER: (z_0.975 + z_0.8) * se."""
    quantile = NormalDist().inv_cdf
    return (quantile(1 - SIGNIFICANCE_LEVEL / 2) + quantile(POWER)) * standard_error


def detectable_difference_over_seeds(seeds: int, deviation: float) -> float:
    """The difference that a paired t-test over this number of seeds shows with POWER.

    `deviation`: the standard deviation of the difference over seeds. The other tail, of a test that
    finds a difference of the wrong sign, is below 1e-16 and left out.
    """
    from scipy.special import nctdtrinc, stdtrit

    limit = stdtrit(seeds - 1, 1 - SIGNIFICANCE_LEVEL / 2)
    return deviation * float(nctdtrinc(seeds - 1, 1 - POWER, limit)) / math.sqrt(seeds)
