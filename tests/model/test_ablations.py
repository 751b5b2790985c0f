"""Each variation of the model against a formula, and in all the ways in which a model is used."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch.nn import functional

import systems
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layers import FeedForward, ResidualConnection
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.positions import rotate
from bleuprint.model.precision import round_to_bfloat16
from bleuprint.model.rows import pad_rows, unpad_rows
from bleuprint.model.transformer import Transformer
from models import SHAPE, SOURCE, TARGET, WORDS, input_of, model_of, trained_model_of

VARIATIONS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positional_encoding": "learned", "activation": "gelu", "output_bias": True},
    {"bias": False, "d_k": 3, "d_v": 5},
    {"positional_encoding": "rotary"},
    {"positional_encoding": "none"},
    {"scale_embeddings": False},
    {"scale_attention": False},
    {"normalization": "rms"},
    {"normalization": "rms", "norm": "pre"},
    {"activation": "swiglu"},
    {"activation": "swiglu", "bias": False, "positional_encoding": "rotary", "d_k": 6, "d_v": 3},
]
each = pytest.mark.parametrize("changes", VARIATIONS, ids=str)


@each
def test_steps_with_a_cache_equal_the_whole(changes):
    model = trained_model_of(**changes)
    target = torch.tensor([[1, 6, 7, 5], [1, 9, 3, 4]])
    whole = model(SOURCE, target)
    state = model.init_cache(SOURCE)
    for position in range(target.size(1)):
        logits, state = model.step(target[:, position], state)
        assert (logits[:, :WORDS] == -torch.inf).all()
        torch.testing.assert_close(logits[:, WORDS:], whole[:, position, WORDS:])


@each
def test_padding_and_the_future_change_nothing(changes):
    model = trained_model_of(**changes)
    together = model(SOURCE, TARGET)
    torch.testing.assert_close(model(SOURCE[1:, :3], TARGET[1:, :2]), together[1:, :2])
    later = TARGET.clone()
    later[0, 2:] = 8
    torch.testing.assert_close(model(SOURCE, later)[0, :2], together[0, :2])


@each
def test_attention_weights_are_what_the_kernel_mixes_by(changes):
    model = trained_model_of(**changes)
    weights = model.attention_weights(SOURCE, TARGET)
    for kind, layers in weights._asdict().items():
        stack = model.encoder if kind == "encoder" else model.decoder
        for found, layer in zip(layers, stack, strict=True):
            attention = layer.cross_attention if kind == "cross" else layer.self_attention
            if kind == "cross":
                memory, layout = (
                    pad_rows(model.encode(SOURCE)[0]),
                    PaddedLayout(tuple(SOURCE.shape)),
                )
                _, values = attention.project_key_value(memory, layout)
            else:
                x = input_of(attention.in_proj, lambda: model(SOURCE, TARGET))
                layout = PaddedLayout(tuple(SOURCE.shape if kind == "encoder" else TARGET.shape))
                _, _, values = attention.project_qkv(x, layout)
            mixture = input_of(attention.out_proj, lambda: model(SOURCE, TARGET))
            mixed = (found @ values).transpose(1, 2).flatten(2)
            torch.testing.assert_close(mixed, unpad_rows(mixture, tuple(mixed.shape[:2])))
            torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))
    padding = (SOURCE == PAD)[:, None, None, :]
    for found in (*weights.encoder, *weights.cross):
        assert ((found == 0) == padding).all()
    for found in weights.decoder:
        assert ((found == 0) == torch.ones_like(found).triu(1)).all()


@each
def test_bfloat16_stays_near(changes):
    model = model_of(**changes).float()
    expected = model(SOURCE, TARGET)
    round_to_bfloat16(model)
    model.activation_dtype = torch.bfloat16
    found = model(SOURCE, TARGET)
    found.sum().backward()
    step, _ = model.step(TARGET[:, 0], model.init_cache(SOURCE))
    assert found.dtype == step.dtype == torch.bfloat16
    near = {"atol": 0.15, "rtol": 0.1}
    torch.testing.assert_close(found.float(), expected, **near)
    torch.testing.assert_close(step.float()[:, WORDS:], expected[:, 0, WORDS:], **near)
    assert all(parameter.grad is not None for parameter in model.parameters())


def complex_rotation(x, start):
    """Su et al. 2021, section 3.2.2, by complex numbers; x (..., T, K) in float64."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    frequency = 10000.0 ** (-2 * torch.arange(pairs.size(-1), dtype=torch.float64) / x.size(-1))
    position = torch.arange(start, start + x.size(-2), dtype=torch.float64)[:, None]
    return torch.view_as_real(
        pairs * torch.polar(torch.ones(1).double(), position * frequency)
    ).flatten(-2)


@pytest.mark.parametrize("start", [0, 3])
def test_rotary_positions_are_complex_products(start):
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(rotate(x, start), complex_rotation(x, start), atol=1e-5, rtol=1e-5)


def test_rotary_attention_by_hand():
    """Queries and keys of one head are turned, values are not; cross-attention turns nothing."""
    shape = dataclasses.replace(SHAPE, heads=1, d_k=4, d_v=5, positional_encoding="rotary")
    torch.manual_seed(1)
    attention = MultiHeadAttention(shape).double()
    x = torch.randn(1, 6, 16, dtype=torch.float64)
    query, key, value = attention.in_proj(x).split([4, 4, 5], dim=-1)
    scores = complex_rotation(query, 0) @ complex_rotation(key, 0).mT / 2
    expected = attention.out_proj(scores.softmax(-1) @ value)
    rows, layout = pad_rows(x), PaddedLayout((1, 6))
    found = unpad_rows(attention(rows, layout), layout.size)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    plain = attention.out_proj((query @ key.mT / 2).softmax(-1) @ value)
    memory = attention.project_key_value(rows, layout)
    found = attention.attend_memory(rows, layout, *memory, layout)
    torch.testing.assert_close(unpad_rows(found, layout.size), plain)


def test_without_positions_order_is_not_seen():
    model = trained_model_of(positional_encoding="none")
    order = torch.tensor([3, 0, 4, 2, 1])
    memory, _ = model.encode(SOURCE[:1])
    shuffled, _ = model.encode(SOURCE[:1, order])
    torch.testing.assert_close(shuffled, memory[:, order])
    rotary = trained_model_of(positional_encoding="rotary")
    assert not torch.allclose(
        rotary.encode(SOURCE[:1, order])[0], rotary.encode(SOURCE[:1])[0][:, order]
    )


@pytest.mark.parametrize("scaled", [True, False])
def test_embeddings_are_scaled_or_not(scaled):
    model = model_of(scale_embeddings=scaled, positional_encoding="none")
    x = input_of(model.encoder[0], lambda: model(SOURCE, TARGET))
    factor = math.sqrt(SHAPE.d_model) if scaled else 1
    expected = functional.embedding(SOURCE, model.source_embedding.weight) * factor
    torch.testing.assert_close(unpad_rows(x, tuple(SOURCE.shape)), expected)


@pytest.mark.parametrize(("d_model", "factor"), [(9, 3), (36, 6)])
def test_embeddings_of_each_width_are_scaled_by_its_root(d_model, factor):
    model = model_of(d_model=d_model, positional_encoding="none")
    x = input_of(model.encoder[0], lambda: model(SOURCE, TARGET))
    expected = functional.embedding(SOURCE, model.source_embedding.weight) * factor
    torch.testing.assert_close(unpad_rows(x, tuple(SOURCE.shape)), expected)


@pytest.mark.parametrize(
    ("d_k", "scaled", "divisor"),
    [(1, True, 1), (9, True, 3), (16, True, 4), (9, False, 1), (16, False, 1)],
)
def test_attention_of_each_width_is_scaled_by_its_root_or_not(d_k, scaled, divisor):
    shape = dataclasses.replace(SHAPE, heads=1, d_k=d_k, d_v=5, scale_attention=scaled)
    torch.manual_seed(2)
    attention = MultiHeadAttention(shape).double()
    x = 3 * torch.randn(1, 6, 16, dtype=torch.float64)
    query, key, value = attention.in_proj(x).split([d_k, d_k, 5], dim=-1)
    weights = (query @ key.mT / divisor).softmax(-1)
    found = unpad_rows(attention(pad_rows(x), PaddedLayout((1, 6))), (1, 6))
    torch.testing.assert_close(found, attention.out_proj(weights @ value))


@pytest.mark.parametrize("scaled", [True, False])
def test_attention_is_scaled_or_not(scaled):
    shape = dataclasses.replace(SHAPE, heads=1, d_k=4, d_v=4, scale_attention=scaled)
    attention = MultiHeadAttention(shape).double()
    x = 3 * torch.randn(1, 6, 16, dtype=torch.float64)
    query, key, value = attention.in_proj(x).split([4, 4, 4], dim=-1)
    weights = (query @ key.mT / (2 if scaled else 1)).softmax(-1)
    found = unpad_rows(attention(pad_rows(x), PaddedLayout((1, 6))), (1, 6))
    torch.testing.assert_close(found, attention.out_proj(weights @ value))


def test_rms_norm_by_its_formula():
    """Zhang and Sennrich 2019, equation 4: no mean is taken off, and nothing is added."""
    connection = ResidualConnection(dataclasses.replace(SHAPE, normalization="rms")).double().eval()
    assert [name for name, _ in connection.named_parameters()] == ["norm.weight"]
    with torch.no_grad():
        connection.norm.weight.uniform_(0.5, 2)
    x = torch.randn(3, 16, dtype=torch.float64) + 5
    root = (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    found = connection(x, lambda _: torch.zeros_like(x))
    torch.testing.assert_close(found, x / root * connection.norm.weight)


def test_swiglu_by_its_formula():
    """Shazeer 2020, equation 6: (Swish(xW) * xV) W2."""
    network = FeedForward(dataclasses.replace(SHAPE, activation="swiglu")).double().eval()
    x = torch.randn(3, 16, dtype=torch.float64)
    gate, value = (
        x @ rows.T + bias
        for rows, bias in zip(network.fc1.weight.chunk(2), network.fc1.bias.chunk(2), strict=True)
    )
    hidden = gate / (1 + (-gate).exp()) * value
    torch.testing.assert_close(network(x), hidden @ network.fc2.weight.T + network.fc2.bias)


def test_both_matrices_of_swiglu_are_drawn_as_one_of_relu():
    """Xavier uniform: the bound is (6 / (in + out))^0.5 of each."""
    model = Transformer(
        systems.model(d_model=64, d_ff=256, d_k=16, d_v=16, activation="swiglu"), 11, 11
    )
    for half in model.encoder_layers[0].feed_forward.fc1.weight.chunk(2):
        bound = float(half.detach().abs().max())
        assert bound == pytest.approx(math.sqrt(6 / (64 + 256)), rel=0.01)


def test_an_odd_d_k_is_refused_for_rotary():
    with pytest.raises(ValueError, match=r"^d_k 5 is odd: rotary encodings turn pairs"):
        systems.model(positional_encoding="rotary", d_k=5)
    assert systems.model(positional_encoding="sinusoidal", d_k=5).d_k == 5
