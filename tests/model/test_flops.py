"""Counted operations against torch's own counter and numbers worked by hand."""

import dataclasses

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import systems
from bleuprint.model import backends, rows
from bleuprint.model.flops import forward_flops, training_flops
from bleuprint.model.transformer import Transformer

SHAPE = systems.model(
    encoder_layers=2, decoder_layers=3, d_model=16, d_ff=24, d_k=4, d_v=4, tie_embeddings="none"
)


VARIATIONS = {
    "default": {},
    "keys of 3, values of 7": {"d_k": 3, "d_v": 7},
    "one head, no biases": {"d_k": 8, "d_v": 2, "heads": 1, "bias": False},
    "pre norm, learned positions, one encoder layer": {
        "d_ff": 40,
        "encoder_layers": 1,
        "positional_encoding": "learned",
        "norm": "pre",
    },
    "gelu, output bias, one decoder layer": {
        "d_model": 10,
        "decoder_layers": 1,
        "activation": "gelu",
        "output_bias": True,
    },
    "swiglu, rotary positions, rms": {
        "activation": "swiglu",
        "positional_encoding": "rotary",
        "normalization": "rms",
    },
}


@pytest.fixture
def countable_kernels(monkeypatch):
    """Have products be computed by torch's own kernels, and without padded rows.

    torch's counter knows neither oneDNN's product nor the fused attention kernel of CPUs.
    """
    monkeypatch.setattr(backends, "HAS_ONEDNN", False)
    monkeypatch.setattr(rows, "_CPU_ROW_MULTIPLE", 1)
    with sdpa_kernel(SDPBackend.MATH):
        yield


@pytest.mark.usefixtures("countable_kernels")
@pytest.mark.parametrize("changes", VARIATIONS.values(), ids=VARIATIONS)
@pytest.mark.parametrize(
    ("source_len", "target_len"), [(9, 7), (1, 12)], ids=["9 to 7 tokens", "1 to 12 tokens"]
)
@pytest.mark.parametrize("has_backward_pass", [False, True], ids=["forward", "training"])
def test_operations_are_those_that_torch_counts(changes, source_len, target_len, has_backward_pass):
    """The formulas count in advance what torch's counter finds for one sentence pair.

    They need only the target's vocabulary, since no logits are computed for source tokens.
    """
    shape = dataclasses.replace(SHAPE, **changes)
    source_vocabulary = 40
    target_vocabulary = 11
    model = Transformer(shape, source_vocabulary, target_vocabulary)
    source = torch.randint(4, source_vocabulary, (1, source_len))
    target = torch.randint(4, target_vocabulary, (1, target_len))

    with FlopCounterMode(display=False) as counter:
        logits = model(source, target)
        if has_backward_pass:
            logits.sum().backward()

    formula = training_flops if has_backward_pass else forward_flops
    flops = formula(shape, target_vocabulary, source_len, target_len)
    assert flops == counter.get_total_flops()


def matrix_product(rows, inner, columns):
    """Return the operations of a product of matrices: a multiplication and an addition a term."""
    return 2 * rows * inner * columns


def test_operations_of_a_small_model_are_those_counted_by_hand():
    """One encoder layer, one decoder layer, three heads; two source positions, one target position.

    `matrix_product(rows, inner, columns)` counts a multiplication and an addition per term.
    """
    shape = dataclasses.replace(
        SHAPE, encoder_layers=1, decoder_layers=1, d_model=2, d_ff=5, heads=3, d_k=1, d_v=4
    )
    query_width = key_width = 3 * 1
    value_width = 3 * 4
    encoder_attention = (
        matrix_product(2, 2, query_width + key_width + value_width)
        + 3 * (matrix_product(2, 1, 2) + matrix_product(2, 2, 4))  # scores, mixtures of 3 heads
        + matrix_product(2, value_width, 2)
    )
    decoder_attention = (
        matrix_product(1, 2, query_width + key_width + value_width)
        + 3 * (matrix_product(1, 1, 1) + matrix_product(1, 1, 4))
        + matrix_product(1, value_width, 2)
    )
    cross_attention = (
        matrix_product(1, 2, query_width)
        + matrix_product(2, 2, key_width + value_width)
        + 3 * (matrix_product(1, 1, 2) + matrix_product(1, 2, 4))
        + matrix_product(1, value_width, 2)
    )
    feed_forward_of_a_position = matrix_product(1, 2, 5) + matrix_product(1, 5, 2)
    projection = matrix_product(1, 2, 7)

    expected_forward = (
        encoder_attention
        + decoder_attention
        + cross_attention
        + 3 * feed_forward_of_a_position
        + projection
    )
    target_vocabulary = 7
    assert forward_flops(shape, target_vocabulary, 2, 1) == expected_forward
    # The backward pass has two products of equal size for each: the gradients of both factors.
    assert training_flops(shape, target_vocabulary, 2, 1) == 3 * expected_forward


@pytest.mark.parametrize(
    ("layer_drop", "encoder_layers", "decoder_layers"),
    [
        pytest.param(0.25, 6, 9, id="three quarters of 8 and 12 layers"),
        pytest.param(0.5, 4, 6, id="half of 8 and 12 layers"),
        pytest.param(0.75, 2, 3, id="a quarter of 8 and 12 layers"),
    ],
)
def test_training_costs_the_layers_that_layer_drop_keeps(
    layer_drop, encoder_layers, decoder_layers
):
    """A model of 8 and 12 layers, of which a share is dropped at random, costs a smaller model."""
    with_layer_drop = dataclasses.replace(
        SHAPE, encoder_layers=8, decoder_layers=12, layer_drop=layer_drop
    )
    kept_layers = dataclasses.replace(
        SHAPE, encoder_layers=encoder_layers, decoder_layers=decoder_layers
    )

    flops = training_flops(with_layer_drop, 11, 9, 7)

    assert flops == training_flops(kept_layers, 11, 9, 7)


def test_translating_costs_all_layers_whatever_layer_drop_is():
    with_layer_drop = dataclasses.replace(SHAPE, layer_drop=0.5)

    assert forward_flops(with_layer_drop, 11, 9, 7) == forward_flops(SHAPE, 11, 9, 7)
