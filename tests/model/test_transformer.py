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
from models import SHAPE, SOURCE, TARGET, WORDS, input_of, model_of, trained_model_of


def reference_of(model):
    """Torch's own Transformer with the weights of `model`; its weights beside those of `model`."""
    shape = model.settings
    reference = nn.Transformer(
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
    pairs: list[tuple[nn.Module, nn.Module]] = []
    if shape.norm == "post":
        reference.encoder.norm = reference.decoder.norm = None
    else:
        pairs += [(reference.encoder.norm, model.encoder_norm)]
        pairs += [(reference.decoder.norm, model.decoder_norm)]
    layers = [*zip(reference.encoder.layers, model.encoder, strict=True)]
    layers += zip(reference.decoder.layers, model.decoder, strict=True)
    weights: list[tuple[Tensor, Tensor]] = []
    for theirs, ours in layers:
        attentions = [(theirs.self_attn, ours.self_attention)]
        norms = [ours.self_attention_residual.norm]
        if hasattr(theirs, "multihead_attn"):
            attentions.append((theirs.multihead_attn, ours.cross_attention))
            norms.append(ours.cross_attention_residual.norm)
        norms.append(ours.feed_forward_residual.norm)
        for their_attention, our_attention in attentions:
            weights.append((their_attention.in_proj_weight, our_attention.in_proj.weight))
            weights.append((their_attention.in_proj_bias, our_attention.in_proj.bias))
            pairs.append((their_attention.out_proj, our_attention.out_proj))
        pairs.append((theirs.linear1, ours.feed_forward.fc1))
        pairs.append((theirs.linear2, ours.feed_forward.fc2))
        pairs += [(getattr(theirs, f"norm{number}"), n) for number, n in enumerate(norms, 1)]
    for theirs, ours in pairs:
        weights += [(theirs.weight, ours.weight), (theirs.bias, ours.bias)]
    assert len(weights) == len(list(reference.parameters()))
    with torch.no_grad():
        for theirs, ours in weights:
            theirs.copy_(ours)
    return reference.train(), weights  # its evaluation path is another kernel; dropout is 0


def reference_logits(model, reference):
    scale = math.sqrt(model.settings.d_model)
    place = sinusoidal_positions(torch.arange(9), model.settings.d_model).double()
    x = (
        functional.embedding(SOURCE, model.source_embedding.weight) * scale
        + place[: SOURCE.size(1)]
    )
    y = (
        functional.embedding(TARGET, model.target_embedding.weight) * scale
        + place[: TARGET.size(1)]
    )
    hidden = reference(
        x,
        y,
        tgt_mask=torch.triu(torch.ones(TARGET.size(1), TARGET.size(1), dtype=torch.bool), 1),
        src_key_padding_mask=SOURCE == PAD,
        tgt_key_padding_mask=TARGET == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    return model.projection(hidden)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("target", [11, 13])
def test_equals_torch_transformer_forward_and_backward(norm, activation, target):
    model = trained_model_of(target=target, norm=norm, activation=activation)
    reference, weights = reference_of(model)
    words = TARGET != PAD
    ours, theirs = model(SOURCE, TARGET)[words], reference_logits(model, reference)[words]
    torch.testing.assert_close(ours, theirs)

    outside = [model.source_embedding.weight, model.target_embedding.weight]
    probe = torch.randn_like(ours)
    grads = torch.autograd.grad((ours * probe).sum(), [*outside, *(w for _, w in weights)])
    expected = torch.autograd.grad((theirs * probe).sum(), [*outside, *(w for w, _ in weights)])
    for grad, wanted in zip(grads, expected, strict=True):
        torch.testing.assert_close(grad, wanted)
        assert (grad != 0).any()


def test_hypotheses_of_a_sentence_share_its_source():
    model = model_of()
    state = model.init_cache(SOURCE)
    _, state = model.step(torch.tensor([1, 1]), state)
    state = state.reorder(torch.tensor([0, 0, 1, 1]))  # two hypotheses each
    words = torch.tensor([6, 7, 9, 3])
    logits, state = model.step(words, state)
    for row, word in enumerate(words.tolist()):
        expected = model(SOURCE[row // 2 : row // 2 + 1], torch.tensor([[1, word]]))[0, 1]
        torch.testing.assert_close(logits[row, WORDS:], expected[WORDS:])
    state = state.reorder(torch.tensor([3, 2]), torch.tensor([1]))  # the first sentence ends
    logits, _ = model.step(torch.tensor([4, 5]), state)
    expected = model(SOURCE[1:], torch.tensor([[1, 3, 4]]))[0, 2]
    torch.testing.assert_close(logits[0, WORDS:], expected[WORDS:])


def test_heads_have_sizes_of_their_own():
    """One head at a time, with projections cut from the joint matrix by hand (section 3.2.2)."""
    torch.manual_seed(3)
    shape = dataclasses.replace(SHAPE, d_model=6, heads=2, d_k=3, d_v=5)
    attention = MultiHeadAttention(shape).double()
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    joint, bias = attention.in_proj.weight, attention.in_proj.bias
    assert joint.shape == (2 * (3 + 3 + 5), 6)
    assert attention.out_proj.weight.shape == (6, 2 * 5)
    heads = []
    for head in range(2):
        places = [slice(3 * head, 3 * head + 3), slice(6 + 3 * head, 9 + 3 * head)]
        places.append(slice(12 + 5 * head, 17 + 5 * head))
        query, key, value = (x @ joint[rows].T + bias[rows] for rows in places)
        scores = query @ key.mT / 3**0.5
        heads.append((scores.exp() / scores.exp().sum(-1, keepdim=True)) @ value)
    expected = torch.cat(heads, -1) @ attention.out_proj.weight.T + attention.out_proj.bias
    rows, layout = pad_rows(x), PaddedLayout((2, 4))
    memory = attention.project_key_value(rows, layout)
    for found in (attention(rows, layout), attention.attend_memory(rows, layout, *memory, layout)):
        torch.testing.assert_close(unpad_rows(found, layout.size), expected)


def test_positions_by_hand():
    table = sinusoidal_positions(torch.tensor([2]), 4)[0]
    expected = [math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100)]
    assert table.tolist() == pytest.approx(expected)


def test_each_side_learns_positions_of_its_own():
    model = model_of(positional_encoding="learned")
    for layer, words, places, ids in (
        (model.encoder[0], model.source_embedding, model.source_positions, SOURCE),
        (model.decoder[0], model.target_embedding, model.target_positions, TARGET),
    ):
        assert places.weight.shape == (SHAPE.max_positions, SHAPE.d_model)
        x = unpad_rows(input_of(layer, lambda: model(SOURCE, TARGET)), tuple(ids.shape))
        for row, column in itertools.product(range(2), range(ids.size(1))):
            expected = words.weight[ids[row, column]] * 4 + places.weight[column]
            torch.testing.assert_close(x[row, column], expected)
    assert not torch.equal(model.source_positions.weight, model.target_positions.weight)


@pytest.mark.parametrize("places", ["sinusoidal", "learned"])
def test_sentences_beyond_the_longest_are_refused(places):
    model = model_of(positional_encoding=places, max_positions=4)
    short, long = SOURCE[:, :4], SOURCE
    message = "^a sentence of 5 positions is too long: model.max_positions is 4$"
    state = model.init_cache(short)
    model.decode(TARGET, *model.encode(short))
    for _ in range(4):
        _, state = model.step(TARGET[:, 0], state)
    with pytest.raises(UserError, match=message):
        model.step(TARGET[:, 0], state)
    with pytest.raises(UserError, match=message):
        model.encode(long)
    with pytest.raises(UserError, match=message):
        model.decode(long, *model.encode(short))


def test_attention_weights_are_of_evaluation_only():
    """In training the weights that are mixed by are dropped and scaled."""
    with pytest.raises(AssertionError, match="do not include dropout"):
        model_of().train().attention_weights(SOURCE, TARGET)
