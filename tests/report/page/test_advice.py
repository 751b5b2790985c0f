"""What the page advises, on curves made by hand, at and around each threshold."""

import pytest

from bleuprint.report.page import advice
from bleuprint.training.history import Validation


def validations(*losses):
    return [Validation(100 * i, loss, 0.0) for i, loss in enumerate(losses, 1)]


@pytest.mark.parametrize(
    ("losses", "falling", "turned"),
    [
        ((), False, False),
        ((2.0,), False, False),
        ((2.0, 1.5), False, False),  # two are no curve
        ((2.5, 2.0, 1.5), True, False),
        ((2.5, 2.0, 1.99), False, False),  # half a percent
        ((2.5, 2.0, 1.98), True, False),  # one
        ((9.0, *(2.0 - i / 100 for i in range(8))), True, False),  # one over the last quarter
        ((9.0, *(2.0 - i / 1000 for i in range(8))), False, False),
        ((1.0, 2.0, 1.5), False, True),  # falls, but has been lower
        ((2.0, 1.0, 1.019), False, False),
        ((2.0, 1.0, 1.02), False, True),
    ],
)
def test_validation_loss(losses, falling, turned):
    assert advice.still_falling(validations(*losses)) == falling
    assert advice.turned(validations(*losses)) == turned


def test_advice_names_the_setting_and_the_trainings():
    curves = {"base": validations(2.5, 2.0, 1.5), "big": validations(2.0, 1.0, 1.5), "c": []}
    (longer, falling), (shorter, risen) = advice.advice(curves)
    assert longer.startswith("Train longer (train.max_updates or train.max_epochs)")
    assert shorter.startswith("Stop earlier (train.patience)")
    assert (falling, risen) == (["base"], ["big"])
    assert not list(advice.advice({"c": []}))
