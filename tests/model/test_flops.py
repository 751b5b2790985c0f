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


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"d_k": 3, "d_v": 7},
        {"d_k": 8, "d_v": 2, "heads": 1, "bias": False},
        {"d_ff": 40, "encoder_layers": 1, "positional_encoding": "learned", "norm": "pre"},
        {"d_model": 10, "decoder_layers": 1, "activation": "gelu", "output_bias": True},
        {"activation": "swiglu", "positional_encoding": "rotary", "normalization": "rms"},
    ],
)
@pytest.mark.parametrize(("source", "target"), [(9, 7), (1, 12)])
def test_flops_equal_torchs_own_count_without_padding(changes, source, target, monkeypatch):
    # the counter includes neither oneDNN's product nor the fused attention kernel of CPUs
    monkeypatch.setattr(backends, "HAS_ONEDNN", False)
    monkeypatch.setattr(rows, "_ROW_MULTIPLE", 1)  # rows are not padded
    shape = dataclasses.replace(SHAPE, **changes)
    model = Transformer(shape, 40, 11)  # of which only the target's 11 are projected onto
    ids = torch.randint(4, 40, (1, source)), torch.randint(4, 11, (1, target))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        logits = model(*ids)
    assert forward_flops(shape, 11, source, target) == counter.get_total_flops()
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    forward = forward_flops(shape, 11, source, target)
    assert training_flops(shape, 11, source, target) == forward + counter.get_total_flops()


def test_flops_by_hand():
    shape = dataclasses.replace(
        SHAPE, encoder_layers=1, decoder_layers=1, d_model=2, d_ff=5, heads=3, d_k=1, d_v=4
    )
    # each 2mkn; queries and keys are 3 wide, values 12; 2 source positions, 1 target position
    encoder = 2 * 2 * 2 * (3 + 3 + 12) + 2 * 2 * 12 * 2 + 3 * 2 * (2 * 1 * 2 + 2 * 2 * 4)
    own = 2 * 1 * 2 * (3 + 3 + 12) + 2 * 1 * 12 * 2 + 3 * 2 * (1 * 1 * 1 + 1 * 1 * 4)
    cross = 2 * 1 * 2 * 3 + 2 * 2 * 2 * (3 + 12) + 2 * 1 * 12 * 2 + 3 * 2 * (1 * 1 * 2 + 1 * 2 * 4)
    feed_forward = 2 * 2 * 5 + 2 * 5 * 2  # of a position
    projection = 2 * 1 * 2 * 7
    layers = encoder + own + cross + 3 * feed_forward
    assert forward_flops(shape, 7, 2, 1) == layers + projection
    assert training_flops(shape, 7, 2, 1) == 3 * (layers + projection)


def test_layers_that_are_left_out_cost_nothing():
    halved = dataclasses.replace(SHAPE, layer_drop=0.5)
    half = dataclasses.replace(SHAPE, encoder_layers=4, decoder_layers=6, layer_drop=0.5)
    assert training_flops(half, 11, 9, 7) == training_flops(SHAPE, 11, 9, 7)
    assert forward_flops(halved, 11, 9, 7) == forward_flops(SHAPE, 11, 9, 7)  # all translate


@pytest.mark.parametrize(
    ("layer_drop", "encoder_layers", "decoder_layers"),
    [(0.25, 6, 9), (0.75, 2, 3)],
)
def test_training_costs_the_layers_that_layer_drop_keeps(
    layer_drop, encoder_layers, decoder_layers
):
    dropping = dataclasses.replace(
        SHAPE,
        encoder_layers=8,
        decoder_layers=12,
        layer_drop=layer_drop,
    )
    kept = dataclasses.replace(
        SHAPE,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
    )
    assert training_flops(dropping, 11, 9, 7) == training_flops(kept, 11, 9, 7)
