"""Dropout: how many elements become 0, the scale of the others, and the gradients."""

import math

import pytest
import torch

from bleuprint.model.dropout import dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_elements_become_0_or_are_divided_by_the_share_that_stays(rate):
    """Each element draws 16 bits; so the rate is rounded to a multiple of 1/65,536."""
    torch.manual_seed(1)

    outputs = dropout(torch.ones(1001, 333), rate, training=True)

    rounded_rate = round(rate * 65_536) / 65_536
    scale = torch.tensor(1 / (1 - rounded_rate)).item()  # rounded to float32
    assert set(outputs.unique().tolist()) == {0.0, scale}


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_as_many_elements_become_0_as_the_rate_says(rate):
    """The number is random: it may differ from the expected one by four standard deviations."""
    torch.manual_seed(1)
    inputs = torch.ones(1001, 333)

    outputs = dropout(inputs, rate, training=True)

    element_count = inputs.numel()
    expected_count = rate * element_count
    dropped_count = int((outputs == 0).sum())
    standard_deviation = math.sqrt(element_count * rate * (1 - rate))
    rounding = element_count / 65_536  # The rate is a multiple of 1/65,536.
    assert abs(dropped_count - expected_count) < 4 * standard_deviation + rounding


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("distance", [1, 2, 3])
def test_neighbors_are_dropped_independently(rate, distance):
    """Four neighbors take 16 bits each of one random number of 64 bits.

    If they are independent, two are dropped together with the probability rate x rate.
    """
    torch.manual_seed(1)

    is_dropped = dropout(torch.ones(1001, 333), rate, training=True) == 0

    are_both_dropped = is_dropped[:, :-distance] & is_dropped[:, distance:]
    share_of_both = float(are_both_dropped.double().mean())
    assert share_of_both == pytest.approx(rate**2, abs=0.005)


def test_gradients_are_dropped_and_scaled_like_the_elements():
    """An element is multiplied by 0 or by the scale, and so must be its gradient."""
    torch.manual_seed(1)
    inputs = torch.randn(50, 7, requires_grad=True)

    outputs = dropout(inputs, 0.4, training=True)
    outputs.sum().backward()

    factors = inputs.grad  # The gradient of the sum by each element is the factor of the element.
    torch.testing.assert_close(outputs.detach(), inputs.detach() * factors)


def test_equal_seeds_drop_the_same_elements():
    """Otherwise a training could not be repeated."""
    inputs = torch.ones(40, 40)

    torch.manual_seed(5)
    first_outputs = dropout(inputs, 0.5, training=True)
    torch.manual_seed(5)
    second_outputs = dropout(inputs, 0.5, training=True)

    assert torch.equal(first_outputs, second_outputs)


def test_the_next_call_drops_other_elements():
    """Equal masks in all layers and updates would train only a part of the network."""
    inputs = torch.ones(40, 40)
    torch.manual_seed(5)

    first_outputs = dropout(inputs, 0.5, training=True)
    second_outputs = dropout(inputs, 0.5, training=True)

    assert not torch.equal(first_outputs, second_outputs)


@pytest.mark.parametrize(
    ("rate", "training"),
    [pytest.param(0.0, True, id="rate 0"), pytest.param(0.5, False, id="evaluation")],
)
def test_where_nothing_is_dropped_no_random_number_is_drawn(rate, training):
    """Drawing numbers would change all that a training draws later."""
    state_before = torch.get_rng_state()
    inputs = torch.ones(3)

    outputs = dropout(inputs, rate, training)

    assert outputs is inputs
    assert torch.equal(torch.get_rng_state(), state_before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_outputs_have_the_data_type_of_the_inputs(dtype):
    assert dropout(torch.ones(9, dtype=dtype), 0.5, training=True).dtype == dtype
