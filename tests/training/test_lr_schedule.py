"""Schedules against their formulas, and by hand."""

import math

import pytest

from bleuprint.config.optimization import Constant, Cosine, InverseSqrt, LrSchedule, Noam
from bleuprint.training.lr_schedule import learning_rate


@pytest.mark.parametrize(
    ("schedule", "expected_rates"),
    [
        pytest.param(
            LrSchedule(inverse_sqrt=InverseSqrt(lr=0.4, warmup_updates=100, warmup_init_lr=0.0)),
            {1: 0.004, 50: 0.2, 100: 0.4, 400: 0.2, 10_000: 0.04},
            id="inverse_sqrt",
        ),
        pytest.param(
            # In 10 updates from 0.1 to 0.5: 0.04 more at each.
            LrSchedule(inverse_sqrt=InverseSqrt(lr=0.5, warmup_updates=10, warmup_init_lr=0.1)),
            {1: 0.14, 5: 0.3, 10: 0.5, 40: 0.25},
            id="inverse_sqrt, warmup from 0.1",
        ),
        pytest.param(
            LrSchedule(inverse_sqrt=InverseSqrt(lr=0.5, warmup_updates=0, warmup_init_lr=0.1)),
            {1: 0.5, 4: 0.25, 100: 0.05},
            id="inverse_sqrt, no warmup",
        ),
        pytest.param(
            # 2 / sqrt(64) is the rate of update 1.
            LrSchedule(noam=Noam(factor=2.0, warmup_updates=0)),
            {1: 0.25, 4: 0.125, 100: 0.025},
            id="noam, no warmup",
        ),
        pytest.param(
            LrSchedule(constant=Constant(lr=0.0005)),
            {1: 0.0005, 7: 0.0005, 10**6: 0.0005},
            id="constant",
        ),
        pytest.param(
            # The way down from 1.0 to 0.2 takes 100 updates; after half of them it is 0.6. A
            # quarter of the half cosine is cos(pi / 4), the root of 0.5.
            LrSchedule(cosine=Cosine(lr=1.0, warmup_updates=10, max_updates=110, min_lr=0.2)),
            {
                1: 0.1,
                5: 0.5,
                10: 1.0,
                35: 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2,
                60: 0.6,
                110: 0.2,
                1000: 0.2,
            },
            id="cosine",
        ),
    ],
)
def test_learning_rates_by_hand(schedule, expected_rates):
    rates = {update: learning_rate(schedule, update, d_model=64) for update in expected_rates}

    assert rates == pytest.approx(expected_rates)


@pytest.mark.parametrize("update", [1, 3999, 4000, 4001, 100_000])
def test_noam_is_the_formula_of_the_paper_times_a_factor(update):
    """Vaswani et al. 2017, equation 3: the rate rises during warmup and then falls."""
    schedule = LrSchedule(noam=Noam(factor=2.0, warmup_updates=4000))

    rate = learning_rate(schedule, update, d_model=512)

    rate_of_paper = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
    assert rate == pytest.approx(2.0 * rate_of_paper)


def test_noam_has_the_peak_of_the_base_transformer_after_its_warmup():
    """Vaswani et al. 2017: width 512, and 4,000 updates of warmup."""
    schedule = LrSchedule(noam=Noam(factor=1.0, warmup_updates=4000))

    peak = learning_rate(schedule, 4000, d_model=512)

    # 1 / sqrt(512 * 4000), computed by hand.
    assert peak == pytest.approx(0.000698771, rel=1e-5)


def test_cosine_without_warmup_starts_at_its_peak():
    """The rate falls from 1 to 0 along half a cosine, in 100 updates."""
    schedule = LrSchedule(cosine=Cosine(lr=1.0, warmup_updates=0, max_updates=100, min_lr=0.0))

    first_rate = learning_rate(schedule, 1, d_model=64)
    middle_rate = learning_rate(schedule, 50, d_model=64)

    # (1 + cos(pi / 100)) / 2, computed by hand.
    assert first_rate == pytest.approx(0.9997533, abs=1e-7)
    assert middle_rate == pytest.approx(0.5)
