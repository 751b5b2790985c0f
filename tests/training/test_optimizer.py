"""The flat optimizer against torch's own, and the moving average by hand."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn

import systems
from bleuprint.config.optimization import Optimizer
from bleuprint.training import optimizer as optimizer_module
from bleuprint.training.optimizer import FlatOptimizer, ema_weights

SETTINGS = systems.train(clip_norm=0.5)
SGD = Optimizer(name="sgd", momentum=0.9, weight_decay=0.1)
PAPER: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9}
# As large as the gradients here, so that an eps that is not used shows.
OTHER: dict[str, Any] = {"betas": (0.7, 0.95), "eps": 0.5}


def network():
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3))


# The norms are between 0.05 and 1,000.
@pytest.mark.parametrize("clip", [0.0, 0.05, 1000.0])
@pytest.mark.parametrize("decay", [0.0, 0.1, 0.3])
@pytest.mark.parametrize(
    ("by", "kind", "options"),
    [
        ("adam", torch.optim.Adam, PAPER),
        ("adam", torch.optim.Adam, OTHER),
        ("adamw", torch.optim.AdamW, PAPER),
        ("adamw", torch.optim.AdamW, OTHER),
        ("sgd", torch.optim.SGD, {"momentum": 0.9}),
        ("sgd", torch.optim.SGD, {"momentum": 0.0}),
    ],
)
def test_equals_torchs_own_with_clipping_and_decay(clip, decay, by, kind, options):
    ours, theirs = network(), network()
    chosen = Optimizer(name=by, weight_decay=decay, **options)
    flat = FlatOptimizer(ours, dataclasses.replace(SETTINGS, clip_norm=clip, optimizer=chosen))
    adam = kind(theirs.parameters(), weight_decay=decay, **options)
    inputs = torch.randn(7, 3)
    for rate in (0.1, 0.03, 0.2):
        flat.zero_grad()
        ours(inputs).square().sum().backward()
        adam.zero_grad()
        theirs(inputs).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), clip or 1e9)
        adam.param_groups[0]["lr"] = rate
        adam.step()
        assert 0.05 < norm < 1000
        assert flat.grad_norm() == pytest.approx(float(norm), rel=1e-5)
        flat.step(rate, flat.grad_norm())
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_limit_above_the_norm_leaves_the_gradient_as_it_is():
    made = network()
    optimizer = FlatOptimizer(made, dataclasses.replace(SETTINGS, clip_norm=1000.0))
    made(torch.randn(7, 3)).square().sum().backward()
    before = optimizer.gradient.clone()
    optimizer.step(0.1, optimizer.grad_norm())
    assert 0 < before.norm() < 1000
    assert torch.equal(optimizer.gradient, before)


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_a_limit_below_the_norm_becomes_the_norm(limit):
    made = network()
    optimizer = FlatOptimizer(made, dataclasses.replace(SETTINGS, clip_norm=limit))
    (10 * made(torch.randn(7, 3)).square().sum()).backward()
    before = optimizer.gradient.clone()
    assert before.norm() > 2 * limit
    optimizer.step(0.1, optimizer.grad_norm())
    torch.testing.assert_close(optimizer.gradient, before * (limit / before.norm()))


@pytest.mark.parametrize("eps", [1e-9, 0.25])
def test_the_first_update_of_adam_by_hand(eps):
    """After one update, Adam's corrected moments are the gradient g and its square."""
    made = network()
    settings = dataclasses.replace(SETTINGS, clip_norm=0.0, optimizer=Optimizer(eps=eps))
    optimizer = FlatOptimizer(made, settings)
    made(torch.randn(7, 3)).square().sum().backward()
    before, gradient = optimizer.weights.clone(), optimizer.gradient.clone()
    optimizer.step(0.1, optimizer.grad_norm())
    expected = before - 0.1 * gradient / (gradient.abs() + eps)
    torch.testing.assert_close(optimizer.weights, expected, rtol=1e-4, atol=1e-6)


def test_each_weight_begins_where_products_are_fast():
    made = network()
    optimizer = FlatOptimizer(made, SETTINGS)
    before = optimizer.weights.data_ptr()
    places = [(parameter.data_ptr() - before) // 4 for parameter in made.parameters()]
    assert places == [0, 64, 128, 192]
    made(torch.randn(7, 3)).sum().backward()
    optimizer.step(0.1, optimizer.grad_norm())
    gaps = torch.ones(256, dtype=torch.bool)
    for start, parameter in zip(places, made.parameters(), strict=True):
        gaps[start : start + parameter.numel()] = False
    assert not optimizer.weights[gaps].any()


@pytest.mark.parametrize("by", ["adam", "sgd"])
def test_a_training_continues_where_weights_lie_otherwise(by, monkeypatch):
    """On a GPU, say, whose products want other places for the weights in the vectors."""
    settings = dataclasses.replace(SETTINGS, optimizer=Optimizer(name=by), ema=0.5)
    one, inputs = network(), torch.randn(7, 3)
    before = FlatOptimizer(one, settings)

    def update(model, optimizer):
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step(0.1, optimizer.grad_norm())
        return [*model.parameters(), *optimizer.state_dict().values()]

    update(one, before)
    monkeypatch.setattr(optimizer_module, "_ALIGNED_ELEMENTS", 16)
    other = network()
    other.load_state_dict(one.state_dict())
    after = FlatOptimizer(other, settings)
    assert len(after.weights) != len(before.weights)
    after.load_state_dict({name: each.clone() for name, each in before.state_dict().items()})
    for ours, theirs in zip(update(one, before), update(other, after), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.999])
def test_the_moving_average_is_the_weighted_mean_of_all_updates(decay):
    made = network()
    settings = dataclasses.replace(SETTINGS, optimizer=SGD, ema=decay)
    optimizer, seen = FlatOptimizer(made, settings), list[dict[str, torch.Tensor]]()
    for number in range(1, 6):
        made(torch.randn(7, 3)).square().sum().backward()
        optimizer.step(0.1, optimizer.grad_norm())
        seen.append({n: p.detach().double().clone() for n, p in made.named_parameters()})
        shares = torch.tensor([decay ** (number - i) for i in range(1, number + 1)])
        averaged = ema_weights(optimizer.state_dict(), decay, number)
        assert averaged.keys() == seen[0].keys()
        for name, mean in averaged.items():
            by_hand = sum(s * w[name] for s, w in zip(shares, seen, strict=True)) / shares.sum()
            torch.testing.assert_close(mean.double(), by_hand, rtol=1e-4, atol=1e-6)
        optimizer.zero_grad()


@pytest.mark.parametrize(
    ("changes", "kinds", "others"),
    [
        ({}, {"exp_avg", "exp_avg_sq"}, {"step"}),
        ({"ema": 0.9}, {"exp_avg", "exp_avg_sq", "ema"}, {"step"}),
        ({"optimizer": SGD}, {"momentum_buffer"}, set()),
    ],
)
def test_the_state_has_what_the_settings_need_and_no_more(changes, kinds, others):
    """The names are those of stored checkpoints: other ones would end a training of before."""
    made = network()
    state = FlatOptimizer(made, dataclasses.replace(SETTINGS, **changes)).state_dict()
    expected = {f"{kind}.{name}" for kind in kinds for name, _ in made.named_parameters()}
    assert set(state) == expected | others
