"""Dropout: how many elements become 0, the scale of the others, and the gradients."""

import math

import pytest
import torch

from bleuprint.model.dropout import dropout


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_a_share_goes_and_the_mean_stays(share):
    torch.manual_seed(1)
    x = torch.ones(1001, 333)
    dropped = dropout(x, share, training=True)
    steps = round(share * 65536)
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(65536 / (65536 - steps)).item()}
    gone, count = int((dropped == 0).sum()), x.numel()
    # within four standard deviations of so many draws
    assert abs(gone - share * count) < 4 * math.sqrt(count * share * (1 - share)) + count / 65536
    # neighbors, which share a random number, are dropped independently
    for distance in (1, 2, 3):
        both = ((dropped[:, :-distance] == 0) & (dropped[:, distance:] == 0)).double().mean()
        assert float(both) == pytest.approx(share**2, abs=0.005)


def test_gradients_go_the_same_way():
    torch.manual_seed(1)
    x = torch.randn(50, 7, requires_grad=True)
    dropped = dropout(x, 0.4, training=True)
    dropped.sum().backward()
    torch.testing.assert_close(dropped.detach(), x.detach() * x.grad)


def test_a_seed_gives_the_same_and_the_next_draw_another():
    x = torch.ones(40, 40)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5, training=True), dropout(x, 0.5, training=True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5, training=True), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("share", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_drawn_where_nothing_goes(share, training):
    before = torch.get_rng_state()
    x = torch.ones(3)
    assert dropout(x, share, training) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_the_kind_of_number_stays():
    for kind in (torch.bfloat16, torch.float64):
        assert dropout(torch.ones(9, dtype=kind), 0.5, training=True).dtype == kind
