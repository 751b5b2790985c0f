"""Power against statsmodels' figures, and against tests that are run on drawn numbers."""

import pytest

from bleuprint.scoring.power import detectable_difference, detectable_difference_over_seeds

# statsmodels 0.15.0, TTestPower().solve_power(alpha=0.05, power=0.8, alternative="two-sided")
EFFECTS = {2: 11.549889754978167, 3: 3.264043552819638, 5: 1.6819970833232674, 10: 0.996001910762}


@pytest.mark.parametrize("deviation", [0.4, 1.7])
@pytest.mark.parametrize("seeds", EFFECTS)
def test_the_detectable_difference_over_seeds_equals_that_of_statsmodels(seeds, deviation):
    """The difference that a paired t-test finds in 80 % of experiments, at a level of 5 %."""
    difference = detectable_difference_over_seeds(seeds, deviation)

    assert difference == pytest.approx(deviation * EFFECTS[seeds], rel=1e-5)


@pytest.mark.parametrize("standard_error", [0.5, 3.0])
def test_the_detectable_difference_over_lines_is_that_of_the_normal_distribution(standard_error):
    """A test at a level of 5 % finds this difference with a power of 80 %.

    The textbook formula adds the quantiles of the normal distribution at 97.5 % and at 80 %.
    """
    quantile_975 = 1.959964
    quantile_800 = 0.841621

    difference = detectable_difference(standard_error)

    expected = standard_error * (quantile_975 + quantile_800)
    rounding_error = 1e-6 * max(1, standard_error)
    assert difference == pytest.approx(expected, abs=rounding_error)
