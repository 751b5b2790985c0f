"""Which differences a test set or a number of seeds can show.

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
    """Return the smallest true difference between two systems that a test will probably detect.

    A two-sided test at the level of 5% finds a difference of this size with a probability of 80%.
    In the normal approximation, it is (z_0.975 + z_0.8) * standard error, where z_q is the
    quantile q of the standard normal distribution.

    Args:
        standard_error: The standard error of the difference, by the paired bootstrap.
    """
    normal = NormalDist()
    # The test is two-sided, so half of the level, 2.5%, lies on each side.
    z_level = normal.inv_cdf(1 - SIGNIFICANCE_LEVEL / 2)
    z_power = normal.inv_cdf(POWER)
    return (z_level + z_power) * standard_error


def detectable_difference_over_seeds(seeds: int, deviation: float) -> float:
    """Return the smallest true difference between two systems that several seeds will detect.

    Each system is trained with several seeds. A paired t-test over the seeds at the level of 5%
    finds a difference of this size with a probability of 80%. (The probability that it finds a
    difference of the wrong sign is below 1e-16, and ignored.)

    Args:
        seeds: The number of seeds.
        deviation: The standard deviation of the difference over seeds.
    """
    from scipy.special import nctdtrinc, stdtrit

    degrees_of_freedom = seeds - 1
    critical_t = stdtrit(degrees_of_freedom, 1 - SIGNIFICANCE_LEVEL / 2)
    # With a true difference d, the statistic t follows the noncentral t distribution with the
    # noncentrality d / (deviation / sqrt(seeds)). Here the noncentrality is computed with which t
    # exceeds the critical value with the probability POWER.
    noncentrality = float(nctdtrinc(degrees_of_freedom, 1 - POWER, critical_t))
    return deviation * noncentrality / math.sqrt(seeds)
