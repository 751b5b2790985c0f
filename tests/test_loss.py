"""The loss by hand."""

import math

import pytest
import torch

from bleuprint.loss import smoothed_loss

# two units with logits 0 and ln 3: probabilities 1/4 and 3/4
LOGITS = torch.tensor([[0.0, math.log(3)]])


def test_without_smoothing_it_is_the_negative_log_likelihood() -> None:
    logits = LOGITS.repeat(2, 1)
    value = smoothed_loss(logits, torch.tensor([1, 0]), 0.0)
    assert float(value) == pytest.approx(-math.log(3 / 4) - math.log(1 / 4))


def test_smoothing_spreads_its_mass_over_all_units() -> None:
    # the smoothed target holds 0.2 / 2 = 0.1 on the wrong unit and 0.9 on the right one
    value = smoothed_loss(LOGITS, torch.tensor([1]), 0.2)
    assert float(value) == pytest.approx(-0.9 * math.log(3 / 4) - 0.1 * math.log(1 / 4))


def test_its_gradient_is_the_softmax_less_the_smoothed_target() -> None:
    logits = LOGITS.clone().requires_grad_()
    (grad,) = torch.autograd.grad(smoothed_loss(logits, torch.tensor([1]), 0.2), logits)
    assert grad[0].tolist() == pytest.approx([1 / 4 - 0.1, 3 / 4 - 0.9])


def test_half_precision_logits_lose_nothing_in_the_sum() -> None:
    logits = LOGITS.to(torch.bfloat16).repeat(3000, 1)
    value = smoothed_loss(logits, torch.ones(3000, dtype=torch.long), 0.0)
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(-3000 * math.log(3 / 4), rel=1e-2)
