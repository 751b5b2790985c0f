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
from models import SHAPE, SOURCE, TARGET, input_of, model_of, trained_model_of

# The settings of one model a line, as changes of SHAPE. Every value of every setting occurs.
VARIATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "pre norm, learned positions, gelu, output bias": {
        "norm": "pre",
        "positional_encoding": "learned",
        "activation": "gelu",
        "output_bias": True,
    },
    "no biases, keys of 3, values of 5": {"bias": False, "d_k": 3, "d_v": 5},
    "rotary positions": {"positional_encoding": "rotary"},
    "no positions": {"positional_encoding": "none"},
    "unscaled embeddings": {"scale_embeddings": False},
    "unscaled attention": {"scale_attention": False},
    "rms after each block": {"normalization": "rms"},
    "rms before each block": {"normalization": "rms", "norm": "pre"},
    "swiglu": {"activation": "swiglu"},
    "swiglu, no biases, rotary positions": {
        "activation": "swiglu",
        "bias": False,
        "positional_encoding": "rotary",
        "d_k": 6,
        "d_v": 3,
    },
}
for_each_variation = pytest.mark.parametrize("changes", VARIATIONS.values(), ids=VARIATIONS)


@for_each_variation
def test_decoding_step_by_step_gives_the_logits_of_decoding_at_once(changes):
    """A step keeps the keys and values of earlier steps in a cache.

    The logits of PAD (0) and BOS (1) are not compared: a step makes them minus infinity.
    """
    model = trained_model_of(**changes)
    target = torch.tensor([[1, 6, 7, 5], [1, 9, 3, 4]])
    expected_logits = model(SOURCE, target)

    cache = model.init_cache(SOURCE)
    for position in range(target.size(1)):
        logits, cache = model.step(target[:, position], cache)

        torch.testing.assert_close(logits[:, 2:], expected_logits[:, position, 2:])


@for_each_variation
def test_a_step_gives_padding_and_the_start_of_a_sentence_logits_of_minus_infinity(changes):
    """So the search cannot put the tokens PAD and BOS into a translation."""
    model = trained_model_of(**changes)
    target = torch.tensor([[1, 6, 7, 5], [1, 9, 3, 4]])
    pad = 0
    bos = 1

    cache = model.init_cache(SOURCE)
    for position in range(target.size(1)):
        logits, cache = model.step(target[:, position], cache)

        assert torch.isneginf(logits[:, [pad, bos]]).all()


@for_each_variation
def test_padding_does_not_change_the_logits_of_a_sentence(changes):
    """The translation of a sentence must not depend on how long the others of its batch are."""
    model = trained_model_of(**changes)
    batch_source = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
    batch_target = torch.tensor([[1, 6, 7, 5], [1, 9, PAD, PAD]])
    logits_in_batch = model(batch_source, batch_target)

    logits_alone = model(torch.tensor([[9, 4, 2]]), torch.tensor([[1, 9]]))

    # Of the second sentence, the logits of its two target positions.
    torch.testing.assert_close(logits_alone[0], logits_in_batch[1, :2])


@for_each_variation
def test_later_tokens_do_not_change_the_logits_of_earlier_ones(changes):
    """In training, the decoder gets the whole target; it must not look at what it is to predict."""
    model = trained_model_of(**changes)
    source = torch.tensor([[5, 6, 7, 8, 2]])
    target = torch.tensor([[1, 6, 7, 5]])
    target_with_other_end = torch.tensor([[1, 6, 8, 8]])

    logits = model(source, target)
    other_logits = model(source, target_with_other_end)

    torch.testing.assert_close(other_logits[0, :2], logits[0, :2])


def attention_of(layer, kind):
    """Return the attention of a layer whose weights `attention_weights` reports under a kind."""
    if kind == "cross":
        return layer.cross_attention
    return layer.self_attention


def values_of(model, attention, kind):
    """Return the values that an attention mixes, (sentences, heads, keys, width of a value)."""
    if kind == "cross":
        memory = pad_rows(model.encode(SOURCE)[0])
        _, values = attention.project_key_value(memory, PaddedLayout(tuple(SOURCE.shape)))
        return values
    inputs = input_of(attention.in_proj, lambda: model(SOURCE, TARGET))
    ids = SOURCE if kind == "encoder" else TARGET
    _, _, values = attention.project_qkv(inputs, PaddedLayout(tuple(ids.shape)))
    return values


@for_each_variation
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_weights_mix_the_values_as_the_model_does(changes, kind):
    """The model uses a fused kernel, which returns no weights; they are computed separately.

    Multiplied by the values, they must give what the model passes on to its output projection.
    """
    model = trained_model_of(**changes)
    weights_by_layer = getattr(model.attention_weights(SOURCE, TARGET), kind)
    layers = model.encoder if kind == "encoder" else model.decoder

    for weights, layer in zip(weights_by_layer, layers, strict=True):
        attention = attention_of(layer, kind)
        mixture = weights @ values_of(model, attention, kind)
        mixture_of_heads = mixture.transpose(1, 2).flatten(2)

        rows = input_of(attention.out_proj, lambda: model(SOURCE, TARGET))
        model_mixture = unpad_rows(rows, tuple(mixture_of_heads.shape[:2]))
        torch.testing.assert_close(mixture_of_heads, model_mixture)


@for_each_variation
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_attention_weights_of_each_query_sum_to_one(changes, kind):
    """The last axis of the weights has the keys to which a query attends."""
    model = trained_model_of(**changes)

    weights_by_layer = getattr(model.attention_weights(SOURCE, TARGET), kind)

    for weights in weights_by_layer:
        sums = weights.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))


@for_each_variation
def test_exactly_the_padding_of_the_source_has_attention_weights_of_zero(changes):
    """The second source sentence is two tokens shorter than the first, and so has padding."""
    model = trained_model_of(**changes)
    source = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])

    weights = model.attention_weights(source, TARGET)

    # Weights have the axes sentence, head, query and key; the key is what may be padding.
    is_padding = (source == PAD)[:, None, None, :]
    for layer_weights in (*weights.encoder, *weights.cross):
        assert ((layer_weights == 0) == is_padding).all()


@for_each_variation
def test_exactly_later_target_tokens_have_attention_weights_of_zero(changes):
    """In the decoder's self-attention, a position sees itself and the positions before it."""
    model = trained_model_of(**changes)

    weights = model.attention_weights(SOURCE, TARGET)

    for layer_weights in weights.decoder:
        # Queries are rows and keys columns: later keys are above the diagonal.
        is_later = torch.ones_like(layer_weights).triu(1)
        assert ((layer_weights == 0) == is_later).all()


@pytest.fixture(params=VARIATIONS.values(), ids=VARIATIONS)
def float32_and_bfloat16_models(request):
    """Return a model in float32 and the same model in bfloat16."""
    float32_model = model_of(**request.param).float()
    bfloat16_model = model_of(**request.param).float()
    round_to_bfloat16(bfloat16_model)
    bfloat16_model.activation_dtype = torch.bfloat16
    return float32_model, bfloat16_model


# What rounding to bfloat16, of 8 bits, may change in several layers.
BFLOAT16_ROUNDING = {"atol": 0.15, "rtol": 0.1}


def test_logits_in_bfloat16_are_near_those_in_float32(float32_and_bfloat16_models):
    """Both models have the same weights; those of the second are rounded to bfloat16."""
    float32_model, bfloat16_model = float32_and_bfloat16_models

    logits = bfloat16_model(SOURCE, TARGET)

    assert logits.dtype == torch.bfloat16
    expected_logits = float32_model(SOURCE, TARGET)
    torch.testing.assert_close(logits.float(), expected_logits, **BFLOAT16_ROUNDING)


def test_a_step_in_bfloat16_is_near_one_in_float32(float32_and_bfloat16_models):
    """A step of the search gives the logits of one position: here the first."""
    float32_model, bfloat16_model = float32_and_bfloat16_models

    first_tokens = TARGET[:, 0]
    logits, _ = bfloat16_model.step(first_tokens, bfloat16_model.init_cache(SOURCE))

    assert logits.dtype == torch.bfloat16
    expected_logits = float32_model(SOURCE, TARGET)[:, 0]
    # Without PAD (0) and BOS (1), whose logits a step makes minus infinity.
    torch.testing.assert_close(logits.float()[:, 2:], expected_logits[:, 2:], **BFLOAT16_ROUNDING)


def test_all_parameters_have_gradients_in_bfloat16(float32_and_bfloat16_models):
    """A copy in bfloat16 that is cut off from its weight would leave the weight untrained."""
    _, bfloat16_model = float32_and_bfloat16_models

    bfloat16_model(SOURCE, TARGET).sum().backward()

    for name, parameter in bfloat16_model.named_parameters():
        assert parameter.grad is not None, name


def rotate_as_complex_numbers(vectors, first_position):
    """Turn queries or keys by their positions (Su et al. 2021, section 3.2.2).

    Two neighboring numbers of a vector are one complex number, which is multiplied by a power of e.

    Args:
        vectors: (..., positions, width) in float64.
        first_position: The position of the first vector.
    """
    pairs = torch.view_as_complex(vectors.unflatten(-1, (-1, 2)).contiguous())
    pair_numbers = torch.arange(pairs.size(-1), dtype=torch.float64)
    frequencies = 10000.0 ** (-2 * pair_numbers / vectors.size(-1))
    last_position = first_position + vectors.size(-2)
    positions = torch.arange(first_position, last_position, dtype=torch.float64)[:, None]
    rotations = torch.polar(torch.ones(1).double(), positions * frequencies)
    return torch.view_as_real(pairs * rotations).flatten(-2)


@pytest.mark.parametrize("first_position", [0, 3])
def test_rotary_positions_are_products_of_complex_numbers(first_position):
    """The reference turns pairs of numbers as complex numbers (Su et al. 2021, section 3.2.2)."""
    sentences, heads, positions, width = 2, 3, 5, 8
    vectors = torch.randn(sentences, heads, positions, width, dtype=torch.float64)

    rotated = rotate(vectors, first_position)

    expected = rotate_as_complex_numbers(vectors, first_position)
    torch.testing.assert_close(rotated, expected, atol=1e-5, rtol=1e-5)


@pytest.fixture
def rotary_attention():
    """Return rotary attention of one head with keys of width 4, and its input of 6 positions."""
    shape = dataclasses.replace(SHAPE, heads=1, d_k=4, d_v=5, positional_encoding="rotary")
    torch.manual_seed(1)
    attention = MultiHeadAttention(shape).double()
    inputs = torch.randn(1, 6, 16, dtype=torch.float64)
    return attention, inputs


def test_rotary_attention_turns_queries_and_keys_but_not_values(rotary_attention):
    """One head with keys of width 4 and values of width 5 attends to 6 positions."""
    attention, inputs = rotary_attention
    query, key, value = attention.in_proj(inputs).split([4, 4, 5], dim=-1)
    turned_query = rotate_as_complex_numbers(query, 0)
    turned_key = rotate_as_complex_numbers(key, 0)
    scores = turned_query @ turned_key.mT / math.sqrt(4)
    expected = attention.out_proj(scores.softmax(-1) @ value)

    layout = PaddedLayout((1, 6))
    outputs = unpad_rows(attention(pad_rows(inputs), layout), layout.size)

    torch.testing.assert_close(outputs, expected, atol=1e-5, rtol=1e-5)


def test_cross_attention_turns_nothing(rotary_attention):
    """Turned by positions, a target token would prefer source tokens of the same position.

    One head with keys of width 4 and values of width 5 attends to 6 positions.
    """
    attention, inputs = rotary_attention
    query, key, value = attention.in_proj(inputs).split([4, 4, 5], dim=-1)
    scores = query @ key.mT / math.sqrt(4)
    expected = attention.out_proj(scores.softmax(-1) @ value)

    rows = pad_rows(inputs)
    layout = PaddedLayout((1, 6))
    memory = attention.project_key_value(rows, layout)
    outputs = attention.attend_memory(rows, layout, *memory, layout)

    torch.testing.assert_close(unpad_rows(outputs, layout.size), expected)


def encodings_of_a_reordered_sentence(positional_encoding):
    """Encode a sentence in another order of its tokens.

    Returns:
        The encoding of the reordered sentence, and that of the sentence in the same new order.
    """
    model = trained_model_of(positional_encoding=positional_encoding)
    order = torch.tensor([3, 0, 4, 2, 1])
    encoding, _ = model.encode(SOURCE[:1])
    encoding_of_reordered, _ = model.encode(SOURCE[:1, order])
    return encoding_of_reordered, encoding[:, order]


def test_without_positions_the_order_of_tokens_is_not_seen():
    encoding_of_reordered, reordered_encoding = encodings_of_a_reordered_sentence("none")

    torch.testing.assert_close(encoding_of_reordered, reordered_encoding)


def test_with_rotary_positions_the_order_of_tokens_is_seen():
    encoding_of_reordered, reordered_encoding = encodings_of_a_reordered_sentence("rotary")

    assert not torch.allclose(encoding_of_reordered, reordered_encoding)


@pytest.mark.parametrize(
    ("d_model", "is_scaled", "expected_factor"),
    [
        pytest.param(16, True, 4, id="width 16"),
        pytest.param(9, True, 3, id="width 9"),
        pytest.param(36, True, 6, id="width 36"),
        pytest.param(16, False, 1, id="width 16, not scaled"),
    ],
)
def test_embeddings_are_scaled_by_the_root_of_their_width(d_model, is_scaled, expected_factor):
    """Without positions, the input of the first layer is the scaled embedding of each token."""
    model = model_of(d_model=d_model, scale_embeddings=is_scaled, positional_encoding="none")

    rows = input_of(model.encoder[0], lambda: model(SOURCE, TARGET))

    embeddings = functional.embedding(SOURCE, model.source_embedding.weight)
    expected = embeddings * expected_factor
    torch.testing.assert_close(unpad_rows(rows, tuple(SOURCE.shape)), expected)


@pytest.mark.parametrize(
    ("d_k", "is_scaled", "divisor"),
    [
        pytest.param(1, True, 1, id="width 1"),
        pytest.param(4, True, 2, id="width 4"),
        pytest.param(9, True, 3, id="width 9"),
        pytest.param(16, True, 4, id="width 16"),
        pytest.param(4, False, 1, id="width 4, not scaled"),
        pytest.param(9, False, 1, id="width 9, not scaled"),
        pytest.param(16, False, 1, id="width 16, not scaled"),
    ],
)
def test_attention_scores_are_divided_by_the_root_of_the_width_of_keys(d_k, is_scaled, divisor):
    """The reference computes one head with values of width 5 on 6 positions, step by step."""
    shape = dataclasses.replace(SHAPE, heads=1, d_k=d_k, d_v=5, scale_attention=is_scaled)
    torch.manual_seed(2)
    attention = MultiHeadAttention(shape).double()
    inputs = 3 * torch.randn(1, 6, 16, dtype=torch.float64)

    outputs = unpad_rows(attention(pad_rows(inputs), PaddedLayout((1, 6))), (1, 6))

    query, key, value = attention.in_proj(inputs).split([d_k, d_k, 5], dim=-1)
    weights = (query @ key.mT / divisor).softmax(-1)
    torch.testing.assert_close(outputs, attention.out_proj(weights @ value))


@pytest.fixture
def rms_connection():
    """Return a residual connection with RMS normalization, whose weights are not 1."""
    shape = dataclasses.replace(SHAPE, normalization="rms")
    connection = ResidualConnection(shape).double().eval()
    with torch.no_grad():
        connection.norm.weight.uniform_(0.5, 2)
    return connection


def test_rms_norm_has_no_bias(rms_connection):
    assert [name for name, _ in rms_connection.named_parameters()] == ["norm.weight"]


def test_rms_norm_divides_by_the_root_of_the_mean_square(rms_connection):
    """Zhang and Sennrich 2019, equation 4: unlike layer normalization, it subtracts no mean.

    The sublayer returns zeros here, so that only the norm changes the inputs.
    """
    inputs = torch.randn(3, 16, dtype=torch.float64) + 5  # with a mean far from 0

    outputs = rms_connection(inputs, lambda _: torch.zeros_like(inputs))

    epsilon = 1e-6
    root_mean_square = (inputs.square().mean(-1, keepdim=True) + epsilon).sqrt()
    torch.testing.assert_close(outputs, inputs / root_mean_square * rms_connection.norm.weight)


def test_swiglu_multiplies_two_products_of_its_input():
    """Shazeer 2020, equation 6: (Swish(xW) * xV) W2; W and V are the halves of one matrix."""
    network = FeedForward(dataclasses.replace(SHAPE, activation="swiglu")).double().eval()
    inputs = torch.randn(3, 16, dtype=torch.float64)

    outputs = network(inputs)

    gate_weight, value_weight = network.fc1.weight.chunk(2)
    gate_bias, value_bias = network.fc1.bias.chunk(2)
    gate = inputs @ gate_weight.T + gate_bias
    value = inputs @ value_weight.T + value_bias
    swish = gate / (1 + (-gate).exp())
    expected = (swish * value) @ network.fc2.weight.T + network.fc2.bias
    torch.testing.assert_close(outputs, expected)


def test_each_of_the_two_matrices_of_swiglu_is_initialized_by_its_own_shape():
    """The bound of Xavier's uniform distribution is the root of 6 / (inputs + outputs).

    Both matrices are halves of one, with 64 inputs and 256 outputs each.
    """
    shape = systems.model(d_model=64, d_ff=256, d_k=16, d_v=16, activation="swiglu")
    model = Transformer(shape, 11, 11)

    joint_matrix = model.encoder_layers[0].feed_forward.fc1.weight
    for matrix in joint_matrix.chunk(2):
        largest_weight = float(matrix.detach().abs().max())
        assert largest_weight == pytest.approx(math.sqrt(6 / (64 + 256)), rel=0.01)


def test_keys_of_odd_width_are_refused_for_rotary_positions():
    with pytest.raises(ValueError, match=r"^d_k 5 is odd, but rotary encodings turn pairs"):
        systems.model(positional_encoding="rotary", d_k=5)


def test_keys_of_odd_width_are_accepted_for_other_positions():
    assert systems.model(positional_encoding="sinusoidal", d_k=5).d_k == 5
