"""The flat Adam against torch's own, and the schedule by hand."""

import dataclasses

import pytest
import torch
from torch import nn

from bleuprint.optimizer import FlatAdam
from bleuprint.schedule import inverse_square_root
from bleuprint.settings import Train

SETTINGS = Train(1, 1, 1, 0.1, 1, (0.9, 0.98), 1e-9, 0.5, 0.0, 0.0, "float32", 1, 1, 1)


def network() -> nn.Sequential:
    torch.manual_seed(4)
    layers = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))
    layers[2].bias = layers[2].bias
    return layers


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_equals_torchs_adam_with_clipping(clip: float) -> None:
    ours, theirs = network(), network()
    flat = FlatAdam(ours, dataclasses.replace(SETTINGS, clip_norm=clip))
    adam = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    inputs = torch.randn(7, 3)
    for rate in (0.1, 0.03, 0.2):
        flat.clear()
        ours(inputs).square().sum().backward()
        adam.zero_grad()
        theirs(inputs).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), clip or 1e9)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        assert flat.norm() == pytest.approx(float(norm), rel=1e-5)
        flat.step(rate, flat.norm())
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_its_state_can_be_put_back() -> None:
    first, second = network(), network()
    optimizers = [FlatAdam(first, SETTINGS), FlatAdam(second, SETTINGS)]
    first(torch.ones(1, 3)).sum().backward()
    optimizers[0].step(0.1, optimizers[0].norm())
    optimizers[1].weights.copy_(optimizers[0].weights)
    optimizers[1].load({name: tensor.clone() for name, tensor in optimizers[0].tensors().items()})
    for model, optimizer in zip((first, second), optimizers, strict=True):
        optimizer.clear()
        model(torch.ones(1, 3)).square().sum().backward()
        optimizer.step(0.1, optimizer.norm())
    assert torch.equal(optimizers[0].weights, optimizers[1].weights)


def test_schedule_by_hand() -> None:
    assert inverse_square_root(1, 0.4, 100) == pytest.approx(0.004)
    assert inverse_square_root(100, 0.4, 100) == 0.4
    assert inverse_square_root(400, 0.4, 100) == pytest.approx(0.2)


def test_schedule_is_the_papers() -> None:
    for update in (1, 3999, 4000, 4001, 100_000):
        paper = 512**-0.5 * min(update**-0.5, update * 4000**-1.5)
        assert inverse_square_root(update, (512 * 4000) ** -0.5, 4000) == pytest.approx(paper)
