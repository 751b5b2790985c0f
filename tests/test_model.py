"""The Transformer against torch.nn.Transformer, and what masks must guarantee."""

import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bleuprint.cost import forward_flops, training_flops
from bleuprint.model import Transformer, count_parameters, positions
from bleuprint.settings import Model
from bleuprint.vocabulary import PAD

SHAPE = Model(
    encoder_layers=2,
    decoder_layers=3,
    d_model=16,
    d_ff=24,
    heads=4,
    dropout=0.0,
    norm="post",
    tie="none",
)
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
WORDS = 2  # PAD and BOS come before them
TARGET = torch.tensor([[1, 6, 7, 5], [1, 9, PAD, PAD]])


def model_of(source: int = 11, target: int = 11, **changes: object) -> Transformer:
    torch.manual_seed(3)
    return Transformer(dataclasses.replace(SHAPE, **changes), source, target).double().eval()


def reference_of(model: Transformer) -> nn.Transformer:
    """torch's own Transformer with the weights of `model`."""
    shape = model.settings
    reference = nn.Transformer(
        shape.d_model,
        shape.heads,
        shape.encoder_layers,
        shape.decoder_layers,
        shape.d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=shape.norm == "pre",
        dtype=torch.float64,
    )
    if shape.norm == "post":
        reference.encoder.norm = reference.decoder.norm = None
    else:
        reference.encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        reference.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    pairs = [*zip(reference.encoder.layers, model.encoder, strict=True)]
    pairs += zip(reference.decoder.layers, model.decoder, strict=True)
    for theirs, ours in pairs:
        _copy_attention(theirs.self_attn, ours.self_attention)
        theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
        theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
        norms = [ours.first.norm, ours.second.norm]
        if hasattr(theirs, "multihead_attn"):
            _copy_attention(theirs.multihead_attn, ours.cross_attention)
            norms.append(ours.third.norm)
        for number, norm in enumerate(norms, 1):
            getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())
    return reference.train()  # its evaluation path is another kernel; dropout is 0


def _copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.input.weight)
        theirs.in_proj_bias.copy_(ours.input.bias)
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def reference_logits(model: Transformer, reference: nn.Transformer) -> torch.Tensor:
    scale = math.sqrt(model.settings.d_model)
    place = positions(0, 9, model.settings.d_model, torch.device("cpu")).double()
    x = model.source_embedding(SOURCE) * scale + place[: SOURCE.size(1)]
    y = model.target_embedding(TARGET) * scale + place[: TARGET.size(1)]
    hidden = reference(
        x,
        y,
        tgt_mask=torch.triu(torch.ones(TARGET.size(1), TARGET.size(1), dtype=torch.bool), 1),
        src_key_padding_mask=SOURCE == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    return model.projection(hidden)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("target", [11, 13])
def test_equals_torch_transformer_forward_and_backward(norm: str, target: int) -> None:
    model = model_of(norm=norm, target=target)
    with torch.no_grad():  # as after training: no bias zero, no norm plain
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    reference = reference_of(model)
    words = TARGET != PAD
    ours, theirs = model(SOURCE, TARGET)[words], reference_logits(model, reference)[words]
    torch.testing.assert_close(ours, theirs)

    probe = torch.randn_like(ours)
    (grad,) = torch.autograd.grad((ours * probe).sum(), model.encoder[0].feed_forward.inner.weight)
    weight = reference.encoder.layers[0].linear1.weight
    (expected,) = torch.autograd.grad((theirs * probe).sum(), weight)
    torch.testing.assert_close(grad, expected)


def test_a_position_sees_no_future_word() -> None:
    model = model_of()
    embedded = model.target_embedding(TARGET).detach().requires_grad_()
    model.target_embedding.forward = lambda _: embedded  # type: ignore[method-assign]
    logits = model(SOURCE, TARGET)
    for position in range(TARGET.size(1)):
        (grad,) = torch.autograd.grad(logits[0, position].sum(), embedded, retain_graph=True)
        assert (grad[0, position + 1 :] == 0).all()
        assert (grad[0, position] != 0).any()


def test_padding_changes_nothing() -> None:
    model = model_of()
    alone = model(SOURCE[1:, :3], TARGET[1:, :2])
    together = model(SOURCE, TARGET)[1:, :2]
    torch.testing.assert_close(alone, together)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_with_a_cache_equal_the_whole(norm: str) -> None:
    model = model_of(norm=norm)
    target = torch.tensor([[1, 6, 7, 5], [1, 9, 3, 4]])
    whole = model(SOURCE, target)
    state = model.start(SOURCE)
    for position in range(target.size(1)):
        logits, state = model.step(target[:, position], state)
        assert (logits[:, :WORDS] == -torch.inf).all()
        torch.testing.assert_close(logits[:, WORDS:], whole[:, position, WORDS:])


def test_hypotheses_of_a_sentence_share_its_source() -> None:
    model = model_of()
    state = model.start(SOURCE)
    _, state = model.step(torch.tensor([1, 1]), state)
    state = state.select(torch.tensor([0, 0, 1, 1]))  # two hypotheses each
    words = torch.tensor([6, 7, 9, 3])
    logits, state = model.step(words, state)
    for row, word in enumerate(words.tolist()):
        expected = model(SOURCE[row // 2 : row // 2 + 1], torch.tensor([[1, word]]))[0, 1]
        torch.testing.assert_close(logits[row, WORDS:], expected[WORDS:])
    state = state.select(torch.tensor([3, 2]), torch.tensor([1]))  # the first sentence ends
    logits, _ = model.step(torch.tensor([4, 5]), state)
    expected = model(SOURCE[1:], torch.tensor([[1, 3, 4]]))[0, 2]
    torch.testing.assert_close(logits[0, WORDS:], expected[WORDS:])


def test_positions_by_hand() -> None:
    table = positions(2, 1, 4, torch.device("cpu"))[0]
    expected = [math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100)]
    assert table.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("tie", "copies"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_weights_are_counted_once(tie: str, copies: int) -> None:
    model = model_of(tie=tie)
    attention = 4 * 16 * 16 + 4 * 16
    feed_forward = 2 * 16 * 24 + 24 + 16
    encoder = attention + feed_forward + 2 * 32
    decoder = 2 * attention + feed_forward + 3 * 32
    assert count_parameters(model) == copies * 11 * 16 + 2 * encoder + 3 * decoder


# (source + copies x target) x 16, and as above 1_960 an encoder layer, 3_080 a decoder layer
@pytest.mark.parametrize(
    ("tie", "expected"),
    [
        ("decoder", (20 + 7) * 16 + 2 * 1_960 + 3 * 3_080),
        ("none", (20 + 2 * 7) * 16 + 2 * 1_960 + 3 * 3_080),
    ],
)
def test_vocabularies_apart_are_counted_each(tie: str, expected: int) -> None:
    model = model_of(source=20, target=7, tie=tie)
    assert count_parameters(model) == expected
    assert model.projection.weight.shape == model.target_embedding.weight.shape == (7, 16)
    assert model.source_embedding.weight.shape == (20, 16)


def test_the_papers_base_model_has_65_million_parameters() -> None:
    base = Model(6, 6, 512, 2048, 8, 0.1, "post", "all")
    with torch.device("meta"):
        assert round(count_parameters(Transformer(base, 37000, 37000)) / 1e6) in (63, 64, 65)


def test_flops_equal_torchs_own_count_without_padding() -> None:
    model = model_of(source=40).float()  # of which only the target's 11 are projected onto
    source, target = torch.randint(4, 40, (1, 9)), torch.randint(4, 11, (1, 7))
    # the counter does not know the fused attention kernel of CPUs
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(source, target).sum().backward()
    assert training_flops(SHAPE, 11, 9, 7) == counter.get_total_flops()
    assert training_flops(SHAPE, 11, 9, 7) == 3 * forward_flops(SHAPE, 11, 9, 7)
