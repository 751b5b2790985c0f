"""The flat Adam against torch's own."""

import dataclasses
from typing import Any, Literal

import pytest
import torch
from torch import nn

import systems
from bleuprint.config.system import Optimizer
from bleuprint.training.optimizer import FlatAdam

SETTINGS = systems.train(clip_norm=0.5)


def network() -> nn.Sequential:
    torch.manual_seed(4)
    layers = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))
    layers[2].bias = layers[2].bias
    return layers


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(("by", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_equals_torchs_own_with_clipping_and_decay(
    clip: float, decay: float, by: Literal["adam", "adamw"], kind: Any
) -> None:
    ours, theirs = network(), network()
    chosen = Optimizer(name=by, betas=(0.9, 0.98), eps=1e-9, weight_decay=decay)
    flat = FlatAdam(ours, dataclasses.replace(SETTINGS, clip_norm=clip, optimizer=chosen))
    adam = kind(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=decay)
    inputs = torch.randn(7, 3)
    for rate in (0.1, 0.03, 0.2):
        flat.zero_grad()
        ours(inputs).square().sum().backward()
        adam.zero_grad()
        theirs(inputs).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), clip or 1e9)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        assert flat.grad_norm() == pytest.approx(float(norm), rel=1e-5)
        flat.step(rate, flat.grad_norm())
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_each_weight_begins_where_products_are_fast() -> None:
    made = network()
    optimizer = FlatAdam(made, SETTINGS)
    before = optimizer.weights.data_ptr()
    places = [(parameter.data_ptr() - before) // 4 for parameter in made.parameters()]
    assert places == [0, 64, 128, 192]
    made(torch.randn(7, 3)).sum().backward()
    optimizer.step(0.1, optimizer.grad_norm())
    gaps = torch.ones(256, dtype=torch.bool)
    for start, parameter in zip(places, made.parameters(), strict=True):
        gaps[start : start + parameter.numel()] = False
    assert not optimizer.weights[gaps].any()


def test_its_state_can_be_put_back() -> None:
    first, second = network(), network()
    optimizers = [FlatAdam(first, SETTINGS), FlatAdam(second, SETTINGS)]
    first(torch.ones(1, 3)).sum().backward()
    optimizers[0].step(0.1, optimizers[0].grad_norm())
    optimizers[1].weights.copy_(optimizers[0].weights)
    optimizers[1].load_state_dict(
        {name: tensor.clone() for name, tensor in optimizers[0].state_dict().items()}
    )
    for model, optimizer in zip((first, second), optimizers, strict=True):
        optimizer.zero_grad()
        model(torch.ones(1, 3)).square().sum().backward()
        optimizer.step(0.1, optimizer.grad_norm())
    assert torch.equal(optimizers[0].weights, optimizers[1].weights)


@pytest.mark.parametrize("change", [{"exp_avg": None}, {"exp_avg": torch.zeros(1)}])
def test_another_state_is_refused(change: dict[str, torch.Tensor | None]) -> None:
    optimizer = FlatAdam(network(), SETTINGS)
    state = {**optimizer.state_dict(), **change}
    with pytest.raises(ValueError, match="does not belong"):
        optimizer.load_state_dict(
            {name: tensor for name, tensor in state.items() if tensor is not None}
        )
