"""Schedules against their formulas, and by hand."""

import math

import pytest

from bleuprint.config.optimization import Constant, Cosine, InverseSqrt, LrSchedule, Noam
from bleuprint.training.lr_schedule import learning_rate

# half-way down cosine is the mean of both ends; this is a quarter of the way, at cos(pi / 4)
QUARTER = 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (InverseSqrt(0.4, 100, 0.0), {1: 0.004, 50: 0.2, 100: 0.4, 400: 0.2, 10_000: 0.04}),
        # a tenth of the way from 0.1 to 0.5 at each update
        (InverseSqrt(0.5, 10, 0.1), {1: 0.14, 5: 0.3, 10: 0.5, 40: 0.25}),
        # without warm-up they decay from the first update
        (InverseSqrt(0.5, 0, 0.1), {1: 0.5, 4: 0.25, 100: 0.05}),
        (Noam(2.0, 0), {1: 0.25, 4: 0.125, 100: 0.025}),
        (Constant(0.0005), {1: 0.0005, 7: 0.0005, 10**6: 0.0005}),
        (
            Cosine(lr=1.0, warmup_updates=10, max_updates=110, min_lr=0.2),
            {1: 0.1, 5: 0.5, 10: 1.0, 35: QUARTER, 60: 0.6, 110: 0.2, 1000: 0.2},
        ),
    ],
)
def test_schedules_by_hand(schedule, expected):
    kinds = {InverseSqrt: "inverse_sqrt", Noam: "noam", Constant: "constant", Cosine: "cosine"}
    given = LrSchedule(**{kinds[type(schedule)]: schedule})
    found = {update: learning_rate(given, update, d_model=64) for update in expected}
    assert found == pytest.approx(expected)


def test_noam_is_the_papers():
    schedule = LrSchedule(noam=Noam(factor=2.0, warmup_updates=4000))
    base = LrSchedule(noam=Noam(factor=1.0, warmup_updates=4000))
    for update in (1, 3999, 4000, 4001, 100_000):
        paper = 2 * 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        assert learning_rate(schedule, update, 512) == pytest.approx(paper)
    # 512^-0.5 * 4000^-0.5, as is printed for the base model
    assert learning_rate(base, 4000, 512) == pytest.approx(0.000698771, rel=1e-5)


def test_cosine_without_warmup_starts_at_its_peak():
    schedule = LrSchedule(cosine=Cosine(lr=1.0, warmup_updates=0, max_updates=100, min_lr=0.0))
    assert learning_rate(schedule, 50, d_model=64) == pytest.approx(0.5)
    # half of 1 + cos(pi / 100)
    assert learning_rate(schedule, 1, d_model=64) == pytest.approx(0.9997533, abs=1e-7)
