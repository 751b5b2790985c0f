"""Power against statsmodels' figures, and against tests that are run on drawn numbers."""

import pytest

from bleuprint.scoring.power import detectable_difference, detectable_difference_over_seeds

# statsmodels 0.15.0, TTestPower().solve_power(alpha=0.05, power=0.8, alternative="two-sided")
EFFECTS = {2: 11.549889754978167, 3: 3.264043552819638, 5: 1.6819970833232674, 10: 0.996001910762}


def test_seeds_equal_statsmodels():
    for seeds, effect in EFFECTS.items():
        for deviation in (0.4, 1.7):
            found = detectable_difference_over_seeds(seeds, deviation)
            assert found == pytest.approx(deviation * effect, rel=1e-5)


def test_lines_by_hand():
    # the normal distribution's 97.5 % and 80 % points are 1.959964 and 0.841621
    assert detectable_difference(0.5) == pytest.approx(0.5 * 2.801585, abs=1e-6)
    assert detectable_difference(3.0) == pytest.approx(8.404755, abs=3e-6)
