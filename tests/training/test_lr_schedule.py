"""Schedules against their formulas, and by hand."""

import math

import pytest

from bleuprint.config.optimization import Constant, Cosine, InverseSqrt, LrSchedule, Noam
from bleuprint.training.lr_schedule import learning_rate


def rates(schedule, *updates, d_model=512):
    return [learning_rate(schedule, update, d_model) for update in updates]


def test_inverse_square_root_by_hand():
    schedule = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.4, warmup_updates=100, warmup_init_lr=0.0))
    assert rates(schedule, 1, 50, 100, 400, 10_000) == pytest.approx([0.004, 0.2, 0.4, 0.2, 0.04])


def test_it_starts_where_it_is_told_to():
    schedule = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.5, warmup_updates=10, warmup_init_lr=0.1))
    # a tenth of the way from 0.1 to 0.5 at each update
    assert rates(schedule, 1, 5, 10, 40) == pytest.approx([0.14, 0.3, 0.5, 0.25])


def test_noam_is_the_papers():
    schedule = LrSchedule(noam=Noam(factor=2.0, warmup_updates=4000))
    for update in (1, 3999, 4000, 4001, 100_000):
        paper = 2 * 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        assert rates(schedule, update) == pytest.approx([paper])
    # 512^-0.5 * 4000^-0.5, as is printed for the base model
    assert rates(LrSchedule(noam=Noam(1.0, 4000)), 4000) == pytest.approx([0.000698771], rel=1e-5)


def test_without_warmup_they_decay_from_the_first_update():
    noam = LrSchedule(noam=Noam(factor=2.0, warmup_updates=0))
    assert rates(noam, 1, 4, 100, d_model=64) == pytest.approx([0.25, 0.125, 0.025])
    inverse = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.5, warmup_updates=0, warmup_init_lr=0.1))
    assert rates(inverse, 1, 4, 100) == pytest.approx([0.5, 0.25, 0.05])


def test_constant():
    assert rates(LrSchedule(constant=Constant(0.0005)), 1, 7, 10**6) == [0.0005] * 3


def test_cosine_by_hand():
    schedule = LrSchedule(cosine=Cosine(lr=1.0, warmup_updates=10, max_updates=110, min_lr=0.2))
    # half-way down it is the mean of both ends; a quarter of the way cos(pi / 4)
    quarter = 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2
    expected = [0.1, 0.5, 1.0, quarter, 0.6, 0.2, 0.2]
    assert rates(schedule, 1, 5, 10, 35, 60, 110, 1000) == pytest.approx(expected)
