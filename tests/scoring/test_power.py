"""Power against statsmodels' figures, and against tests that are run on drawn numbers."""

import math

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp

from bleuprint.scoring.measures import MEASURES
from bleuprint.scoring.power import (
    detectable,
    detectable_over_seeds,
)
from bleuprint.scoring.significance import bootstrap_p, resampled_counts, resampled_values

# statsmodels 0.15.0, TTestPower().solve_power(alpha=0.05, power=0.8, alternative="two-sided")
EFFECTS = {2: 11.549889754978167, 3: 3.264043552819638, 5: 1.6819970833232674, 10: 0.996001910762}


def test_seeds_equal_statsmodels() -> None:
    for seeds, effect in EFFECTS.items():
        assert detectable_over_seeds(seeds, 0.4) == pytest.approx(0.4 * effect, rel=1e-5)


def test_lines_by_hand() -> None:
    # the normal distribution's 97.5 % and 80 % points are 1.959964 and 0.841621
    assert detectable(0.5) == pytest.approx(0.5 * 2.801585, abs=1e-6)


def test_drawn_seeds_find_the_detectable_difference_in_four_of_five() -> None:
    generator = np.random.default_rng(1)
    for seeds in (3, 5):
        drawn = generator.normal(detectable_over_seeds(seeds, 0.7), 0.7, size=(8000, seeds))
        found = (ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05).mean()
        assert found == pytest.approx(0.8, abs=0.015)


def test_drawn_test_sets_find_the_detectable_difference_in_four_of_five() -> None:
    """Edits of lines of ten words are drawn; in the second system there are fewer of them."""
    generator, measure, lines = np.random.default_rng(1), MEASURES["ter"], 100
    resamples = resampled_counts(lines)

    def drawn(fewer: float) -> tuple[float, float, float]:
        """The p-value, the standard error and the size of TER's difference."""
        sides = [generator.normal(5 - less / 10, 1.5, size=lines) for less in (0, fewer)]
        statistics = [np.stack([edits, np.full(lines, 10)], axis=1) for edits in sides]
        one, other = (resampled_values(measure, each, resamples) for each in statistics)
        difference = abs(float(sides[1].mean() - sides[0].mean())) * 10
        return bootstrap_p(other - one, difference), float((other - one).std(ddof=1)), difference

    # the mean of 100 differences of deviation 15 * sqrt 2
    errors = [drawn(0.0)[1] for _ in range(20)]
    assert np.mean(errors) == pytest.approx(1.5 * math.sqrt(2), rel=0.05)
    difference = detectable(1.5 * math.sqrt(2))
    found = np.array([drawn(difference) for _ in range(300)])
    # sacreBLEU's p counts the upper tail of the resamples alone: it is that of a one-sided test
    assert (found[:, 0] < 0.05).mean() == pytest.approx(norm.cdf(2.8016 - 1.6449), abs=0.05)
    assert (found[:, 2] > 1.96 * found[:, 1]).mean() == pytest.approx(0.8, abs=0.06)
