"""The fused loss against torch's, and by hand."""

import math

import pytest
import torch
from torch.nn import functional

from bleuprint import loss
from bleuprint.loss import projected_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("block", [1, 13 * 4, 1 << 20])
def test_equals_cross_entropy_forward_and_backward(
    smoothing: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loss, "_BLOCK", block)
    torch.manual_seed(1)
    hidden = torch.randn(9, 5, dtype=torch.float32, requires_grad=True)
    weight = torch.randn(13, 5, dtype=torch.float32, requires_grad=True)
    targets = torch.randint(0, 13, (9,))

    ours, likelihood = projected_loss(hidden, weight, targets, smoothing)
    logits = hidden @ weight.t()
    expected = functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(ours, expected)
    plain = functional.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(likelihood, plain)

    found = torch.autograd.grad(ours / 7, (hidden, weight))
    wanted = torch.autograd.grad(expected / 7, (hidden, weight))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_by_hand() -> None:
    # two units with logits 0 and ln 3: probabilities 1/4 and 3/4
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[0.0], [math.log(3)]])
    value, likelihood = projected_loss(hidden, weight, torch.tensor([1]), 0.2)
    assert float(likelihood) == pytest.approx(-math.log(3 / 4))
    # the smoothed target holds 0.2 / 2 = 0.1 on the wrong unit and 0.9 on the right one
    assert float(value) == pytest.approx(-0.9 * math.log(3 / 4) - 0.1 * math.log(1 / 4))
