"""The Transformer against torch.nn.Transformer, and what each setting and mask must guarantee."""

import dataclasses
import itertools
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.model.rows import pad_rows, unpad_rows
from bleuprint.runtime.errors import UserError
from models import SHAPE, SOURCE, TARGET, input_of, model_of, trained_model_of


def torch_transformer_of(model):
    """Make torch's own Transformer with the weights of a model.

    Returns:
        The Transformer, and pairs of each of its weights with that of the model.
    """
    shape = model.settings
    torch_transformer = nn.Transformer(
        shape.d_model,
        shape.heads,
        shape.encoder_layers,
        shape.decoder_layers,
        shape.d_ff,
        dropout=0.0,
        activation=shape.activation,
        batch_first=True,
        norm_first=shape.norm == "pre",
        bias=shape.bias,
        dtype=torch.float64,
    )
    weights: list[tuple[Tensor, Tensor]] = []
    if shape.norm == "post":
        torch_transformer.encoder.norm = None
        torch_transformer.decoder.norm = None
    else:
        weights += weights_and_biases(torch_transformer.encoder.norm, model.encoder_norm)
        weights += weights_and_biases(torch_transformer.decoder.norm, model.decoder_norm)
    for torch_layer, layer in zip(torch_transformer.encoder.layers, model.encoder, strict=True):
        weights += attention_weights(torch_layer.self_attn, layer.self_attention)
        weights += feed_forward_weights(torch_layer, layer)
        weights += weights_and_biases(torch_layer.norm1, layer.self_attention_residual.norm)
        weights += weights_and_biases(torch_layer.norm2, layer.feed_forward_residual.norm)
    for torch_layer, layer in zip(torch_transformer.decoder.layers, model.decoder, strict=True):
        weights += attention_weights(torch_layer.self_attn, layer.self_attention)
        weights += attention_weights(torch_layer.multihead_attn, layer.cross_attention)
        weights += feed_forward_weights(torch_layer, layer)
        weights += weights_and_biases(torch_layer.norm1, layer.self_attention_residual.norm)
        weights += weights_and_biases(torch_layer.norm2, layer.cross_attention_residual.norm)
        weights += weights_and_biases(torch_layer.norm3, layer.feed_forward_residual.norm)
    assert len(weights) == len(list(torch_transformer.parameters()))
    with torch.no_grad():
        for torch_weight, weight in weights:
            torch_weight.copy_(weight)
    # In evaluation torch uses another kernel. Its dropout is 0, so training changes nothing.
    return torch_transformer.train(), weights


def weights_and_biases(torch_module, module):
    """Return the pairs of torch's and our weight and bias of two modules."""
    return [(torch_module.weight, module.weight), (torch_module.bias, module.bias)]


def attention_weights(torch_attention, attention):
    """Return the pairs of torch's and our weights and biases of an attention."""
    return [
        (torch_attention.in_proj_weight, attention.in_proj.weight),
        (torch_attention.in_proj_bias, attention.in_proj.bias),
        *weights_and_biases(torch_attention.out_proj, attention.out_proj),
    ]


def feed_forward_weights(torch_layer, layer):
    """Return the pairs of torch's and our weights and biases of a feed-forward network."""
    return [
        *weights_and_biases(torch_layer.linear1, layer.feed_forward.fc1),
        *weights_and_biases(torch_layer.linear2, layer.feed_forward.fc2),
    ]


def torch_logits(model, torch_transformer):
    """Return the logits of torch's Transformer, with embeddings and projection of a model."""
    positions = sinusoidal_positions(torch.arange(9), model.settings.d_model).double()
    scale = math.sqrt(model.settings.d_model)
    source_words = functional.embedding(SOURCE, model.source_embedding.weight) * scale
    target_words = functional.embedding(TARGET, model.target_embedding.weight) * scale
    target_len = TARGET.size(1)
    hidden = torch_transformer(
        source_words + positions[: SOURCE.size(1)],
        target_words + positions[:target_len],
        tgt_mask=torch.triu(torch.ones(target_len, target_len, dtype=torch.bool), 1),
        src_key_padding_mask=SOURCE == PAD,
        tgt_key_padding_mask=TARGET == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    return model.projection(hidden)


for_each_torch_variation = pytest.mark.parametrize(
    ("norm", "activation", "target_vocabulary_size"),
    list(itertools.product(["post", "pre"], ["relu", "gelu"], [11, 13])),
)


@for_each_torch_variation
def test_logits_are_those_of_torchs_transformer(norm, activation, target_vocabulary_size):
    """The reference is `torch.nn.Transformer` with the same weights, in double precision."""
    model = trained_model_of(target=target_vocabulary_size, norm=norm, activation=activation)
    torch_transformer, _ = torch_transformer_of(model)

    logits = model(SOURCE, TARGET)

    is_word = TARGET != PAD
    expected_logits = torch_logits(model, torch_transformer)
    torch.testing.assert_close(logits[is_word], expected_logits[is_word])


@for_each_torch_variation
def test_gradients_are_those_of_torchs_transformer(norm, activation, target_vocabulary_size):
    """The reference is `torch.nn.Transformer` with the same weights, in double precision."""
    model = trained_model_of(target=target_vocabulary_size, norm=norm, activation=activation)
    torch_transformer, weights = torch_transformer_of(model)
    is_word = TARGET != PAD
    logits = model(SOURCE, TARGET)[is_word]
    reference_logits = torch_logits(model, torch_transformer)[is_word]
    # Random factors, so that the gradients of no two logits are equal.
    factors = torch.randn_like(logits)

    # torch's Transformer has no embeddings, so both computations use those of the model.
    embeddings = [model.source_embedding.weight, model.target_embedding.weight]
    our_weights = [*embeddings, *(weight for _, weight in weights)]
    torch_weights = [*embeddings, *(torch_weight for torch_weight, _ in weights)]
    our_gradients = torch.autograd.grad((logits * factors).sum(), our_weights)
    torch_gradients = torch.autograd.grad((reference_logits * factors).sum(), torch_weights)

    for our_gradient, torch_gradient in zip(our_gradients, torch_gradients, strict=True):
        torch.testing.assert_close(our_gradient, torch_gradient)
        assert (our_gradient != 0).any()


def test_hypotheses_of_a_sentence_share_its_source():
    """Beam search extends several hypotheses of a sentence, which all attend to its source.

    `reorder` says which hypotheses go on: here two copies of the only one of each of two sentences.
    The words 6 and 7 then extend those of sentence 0, and 9 and 3 those of sentence 1.
    """
    model = model_of()
    cache = model.init_cache(SOURCE)
    bos = 1
    _, cache = model.step(torch.tensor([bos, bos]), cache)
    cache = cache.reorder(torch.tensor([0, 0, 1, 1]))

    words = torch.tensor([6, 7, 9, 3])
    logits, _ = model.step(words, cache)

    for hypothesis, word in enumerate(words.tolist()):
        sentence = hypothesis // 2
        target = torch.tensor([[bos, word]])
        expected_logits = model(SOURCE[sentence : sentence + 1], target)[0, 1]
        # Without PAD (0) and BOS (1), whose logits a step makes minus infinity.
        torch.testing.assert_close(logits[hypothesis, 2:], expected_logits[2:])


def test_the_search_goes_on_without_a_sentence_that_has_ended():
    """Of two sentences with two hypotheses each (0 and 1, 2 and 3), the first sentence ends."""
    model = model_of()
    cache = model.init_cache(SOURCE)
    bos = 1
    _, cache = model.step(torch.tensor([bos, bos]), cache)
    cache = cache.reorder(torch.tensor([0, 0, 1, 1]))
    _, cache = model.step(torch.tensor([6, 7, 9, 3]), cache)

    # Hypotheses 3 and 2 go on, in this order; sentence 1 is the only one that is left.
    cache = cache.reorder(torch.tensor([3, 2]), torch.tensor([1]))
    logits, _ = model.step(torch.tensor([4, 5]), cache)

    # Hypothesis 3 had the word 3, and now 4.
    expected_logits = model(SOURCE[1:], torch.tensor([[bos, 3, 4]]))[0, 2]
    # Without PAD (0) and BOS (1), whose logits a step makes minus infinity.
    torch.testing.assert_close(logits[0, 2:], expected_logits[2:])


@pytest.fixture
def attention_of_two_heads():
    """Return attention of two heads, with keys of width 3 and values of width 5; and its input."""
    torch.manual_seed(3)
    shape = dataclasses.replace(SHAPE, d_model=6, heads=2, d_k=3, d_v=5)
    attention = MultiHeadAttention(shape).double()
    inputs = torch.randn(2, 4, 6, dtype=torch.float64)
    return attention, inputs


def test_the_matrices_of_attention_have_the_sizes_of_its_heads(attention_of_two_heads):
    """The model has width 6. Each of two heads has queries and keys of width 3, values of 5."""
    attention, _ = attention_of_two_heads
    d_model = 6
    heads = 2
    query_width = key_width = 3
    value_width = 5

    joint_width = heads * (query_width + key_width + value_width)
    assert attention.in_proj.weight.shape == (joint_width, d_model)
    assert attention.out_proj.weight.shape == (d_model, heads * value_width)


@pytest.mark.parametrize("kind", ["self-attention", "cross-attention"])
def test_attention_is_that_of_each_head_by_itself(attention_of_two_heads, kind):
    """Vaswani et al. 2017, section 3.2.2, computed head by head.

    The rows of the joint matrix are the queries of both heads (width 3 each), then their keys
    (3 each), then their values (5 each).
    """
    attention, inputs = attention_of_two_heads
    joint_weight = attention.in_proj.weight
    joint_bias = attention.in_proj.bias
    mixtures = []
    for head in range(2):
        query_rows = slice(3 * head, 3 * head + 3)
        key_rows = slice(6 + 3 * head, 9 + 3 * head)
        value_rows = slice(12 + 5 * head, 17 + 5 * head)
        query = inputs @ joint_weight[query_rows].T + joint_bias[query_rows]
        key = inputs @ joint_weight[key_rows].T + joint_bias[key_rows]
        value = inputs @ joint_weight[value_rows].T + joint_bias[value_rows]
        exponentials = (query @ key.mT / math.sqrt(3)).exp()
        weights = exponentials / exponentials.sum(-1, keepdim=True)
        mixtures.append(weights @ value)
    output_weight = attention.out_proj.weight
    expected = torch.cat(mixtures, -1) @ output_weight.T + attention.out_proj.bias

    rows = pad_rows(inputs)
    layout = PaddedLayout((2, 4))
    if kind == "self-attention":
        outputs = attention(rows, layout)
    else:
        memory = attention.project_key_value(rows, layout)
        outputs = attention.attend_memory(rows, layout, *memory, layout)

    torch.testing.assert_close(unpad_rows(outputs, layout.size), expected)


def test_sinusoidal_positions_are_those_computed_by_hand():
    """Vaswani et al. 2017, section 3.5, of position 2 in a model of width 4."""
    encoding = sinusoidal_positions(torch.tensor([2]), 4)[0]

    wavelength_factor = 10000 ** (2 / 4)
    expected = [
        math.sin(2),
        math.cos(2),
        math.sin(2 / wavelength_factor),
        math.cos(2 / wavelength_factor),
    ]
    assert encoding.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("side", ["source", "target"])
def test_learned_positions_are_added_to_the_words_of_their_side(side):
    """The first layer's input at a position: the word's scaled embedding plus the position's."""
    model = model_of(positional_encoding="learned")
    first_layer = model.encoder[0] if side == "source" else model.decoder[0]
    ids = SOURCE if side == "source" else TARGET
    words = getattr(model, f"{side}_embedding")
    positions = getattr(model, f"{side}_positions")

    rows = input_of(first_layer, lambda: model(SOURCE, TARGET))
    inputs = unpad_rows(rows, tuple(ids.shape))

    for sentence, position in itertools.product(range(2), range(ids.size(1))):
        word = words.weight[ids[sentence, position]] * math.sqrt(SHAPE.d_model)
        expected_input = word + positions.weight[position]
        torch.testing.assert_close(inputs[sentence, position], expected_input)


def test_each_side_learns_positions_of_its_own():
    """Source and target have one matrix each, with a row for each position."""
    model = model_of(positional_encoding="learned")

    expected_shape = (SHAPE.max_positions, SHAPE.d_model)
    assert model.source_positions.weight.shape == expected_shape
    assert model.target_positions.weight.shape == expected_shape
    assert not torch.equal(model.source_positions.weight, model.target_positions.weight)


@pytest.fixture(params=["sinusoidal", "learned"])
def model_of_4_positions(request):
    """Return a model that takes sentences of at most 4 positions."""
    return model_of(positional_encoding=request.param, max_positions=4)


SHORT_SOURCE = SOURCE[:, :4]
LONG_SENTENCES = SOURCE
TOO_LONG = "^a sentence of 5 positions is too long: model.max_positions is 4$"


def test_a_sentence_as_long_as_max_positions_is_encoded_and_decoded(model_of_4_positions):
    """The model has 4 positions, as many as source and target have tokens."""
    source = torch.tensor([[5, 6, 7, 2]])
    target = torch.tensor([[1, 6, 7, 5]])

    memory = model_of_4_positions.encode(source)
    logits = model_of_4_positions.decode(target, *memory)

    assert logits.size(1) == 4


def test_a_source_that_is_too_long_is_refused(model_of_4_positions):
    with pytest.raises(UserError, match=TOO_LONG):
        model_of_4_positions.encode(LONG_SENTENCES)


def test_a_target_that_is_too_long_is_refused(model_of_4_positions):
    memory = model_of_4_positions.encode(SHORT_SOURCE)

    with pytest.raises(UserError, match=TOO_LONG):
        model_of_4_positions.decode(LONG_SENTENCES, *memory)


def test_a_step_beyond_the_last_position_is_refused(model_of_4_positions):
    """The search has no position for a fifth token in a model of 4 positions."""
    cache = model_of_4_positions.init_cache(torch.tensor([[5, 6, 7, 2]]))
    token = torch.tensor([6])
    for _ in range(4):
        _, cache = model_of_4_positions.step(token, cache)

    message = "^a sentence of 5 positions is too long: model.max_positions is 4$"
    with pytest.raises(UserError, match=message):
        model_of_4_positions.step(token, cache)


def test_attention_weights_are_refused_during_training():
    """In training the weights by which values are mixed are dropped and scaled."""
    with pytest.raises(AssertionError, match="do not include dropout"):
        model_of().train().attention_weights(SOURCE, TARGET)
