"""The Transformer against torch.nn.Transformer, and what each setting and mask must guarantee."""

import dataclasses
import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import systems
from bleuprint.errors import UserError
from bleuprint.model import (
    Attention,
    FeedForward,
    Sublayer,
    Transformer,
    count_parameters,
    positions,
)
from bleuprint.system import Dropout
from bleuprint.vocabulary import PAD

SHAPE = systems.model(
    encoder_layers=2, decoder_layers=3, d_model=16, d_ff=24, d_k=4, d_v=4, tie="none"
)
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, PAD, PAD]])
WORDS = 2  # PAD and BOS come before them
TARGET = torch.tensor([[1, 6, 7, 5], [1, 9, PAD, PAD]])


def model_of(source: int = 11, target: int = 11, **changes: object) -> Transformer:
    torch.manual_seed(3)
    return Transformer(dataclasses.replace(SHAPE, **changes), source, target).double().eval()


def trained_model_of(source: int = 11, target: int = 11, **changes: object) -> Transformer:
    """As after training: no bias is 0, no norm plain."""
    model = model_of(source, target, **changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def reference_of(model: Transformer) -> tuple[nn.Transformer, list[tuple[Tensor, Tensor]]]:
    """torch's own Transformer with the weights of `model`; its weights beside those of `model`."""
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
        norms = [ours.first.norm, ours.second.norm]
        if hasattr(theirs, "multihead_attn"):
            attentions.append((theirs.multihead_attn, ours.cross_attention))
            norms.append(ours.third.norm)
        for their_attention, our_attention in attentions:
            weights.append((their_attention.in_proj_weight, our_attention.input.weight))
            weights.append((their_attention.in_proj_bias, our_attention.input.bias))
            pairs.append((their_attention.out_proj, our_attention.output))
        pairs.append((theirs.linear1, ours.feed_forward.inner))
        pairs.append((theirs.linear2, ours.feed_forward.outer))
        pairs += [(getattr(theirs, f"norm{number}"), n) for number, n in enumerate(norms, 1)]
    for theirs, ours in pairs:
        weights += [(theirs.weight, ours.weight), (theirs.bias, ours.bias)]
    assert len(weights) == len(list(reference.parameters()))
    with torch.no_grad():
        for theirs, ours in weights:
            theirs.copy_(ours)
    return reference.train(), weights  # its evaluation path is another kernel; dropout is 0


def reference_logits(model: Transformer, reference: nn.Transformer) -> Tensor:
    scale = math.sqrt(model.settings.d_model)
    place = positions(0, 9, model.settings.d_model, torch.device("cpu")).double()
    x = model.source_embedding(SOURCE) * scale + place[: SOURCE.size(1)]
    y = model.target_embedding(TARGET) * scale + place[: TARGET.size(1)]
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
def test_equals_torch_transformer_forward_and_backward(
    norm: str, activation: str, target: int
) -> None:
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


def embedded(words: nn.Embedding, ids: Tensor) -> Tensor:
    """What `words` gives from now on, for gradients: a leaf of each position, padding too."""
    leaf = words(ids).detach().requires_grad_()
    words.forward = lambda _: leaf  # type: ignore[method-assign]
    return leaf


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("d_v", [4, 6])
def test_a_position_sees_no_future_word(norm: str, d_v: int) -> None:
    model = model_of(norm=norm, d_v=d_v)
    target = embedded(model.target_embedding, TARGET)
    logits = model(SOURCE, TARGET)
    for position in range(TARGET.size(1)):
        probe = torch.randn_like(logits[:, position])  # a plain sum is constant behind a norm
        loss = (logits[:, position] * probe).sum()
        (grad,) = torch.autograd.grad(loss, target, retain_graph=True)
        assert (grad[:, position + 1 :] == 0).all()
        assert (grad[:, : position + 1] != 0).any(dim=-1).all()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("d_v", [4, 6])
def test_no_word_sees_padding(norm: str, d_v: int) -> None:
    model = model_of(norm=norm, d_v=d_v)
    source = embedded(model.source_embedding, SOURCE)
    target = embedded(model.target_embedding, TARGET)
    words = model(SOURCE, TARGET)[TARGET != PAD]
    grads = torch.autograd.grad((words * torch.randn_like(words)).sum(), [source, target])
    for grad, ids in zip(grads, (SOURCE, TARGET), strict=True):
        assert (grad[ids == PAD] == 0).all()
        assert (grad[ids != PAD] != 0).any(dim=-1).all()


def test_padding_changes_nothing() -> None:
    model = model_of()
    alone = model(SOURCE[1:, :3], TARGET[1:, :2])
    together = model(SOURCE, TARGET)[1:, :2]
    torch.testing.assert_close(alone, together)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("places", ["sinusoidal", "learned"])
@pytest.mark.parametrize("sizes", [(4, 4), (3, 5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_steps_with_a_cache_equal_the_whole(
    norm: str, places: str, sizes: tuple[int, int], bias: bool, activation: str
) -> None:
    model = trained_model_of(
        norm=norm,
        positions=places,
        d_k=sizes[0],
        d_v=sizes[1],
        bias=bias,
        output_bias=bias,
        activation=activation,
    )
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


def test_heads_have_sizes_of_their_own() -> None:
    """One head at a time, with projections cut from the joint matrix by hand (section 3.2.2)."""
    torch.manual_seed(3)
    shape = dataclasses.replace(SHAPE, d_model=6, heads=2, d_k=3, d_v=5)
    attention = Attention(shape).double()
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    joint, bias = attention.input.weight, attention.input.bias
    assert joint.shape == (2 * (3 + 3 + 5), 6)
    assert attention.output.weight.shape == (6, 2 * 5)
    heads = []
    for head in range(2):
        places = [slice(3 * head, 3 * head + 3), slice(6 + 3 * head, 9 + 3 * head)]
        places.append(slice(12 + 5 * head, 17 + 5 * head))
        query, key, value = (x @ joint[rows].T + bias[rows] for rows in places)
        scores = query @ key.mT / 3**0.5
        heads.append((scores.exp() / scores.exp().sum(-1, keepdim=True)) @ value)
    expected = torch.cat(heads, -1) @ attention.output.weight.T + attention.output.bias
    torch.testing.assert_close(attention(x), expected)
    torch.testing.assert_close(attention.cross(x, *attention.remember(x), None), expected)


def input_of(layer: nn.Module, run: Callable[[], object]) -> Tensor:
    """What `layer` is given when `run` runs."""
    seen: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    run()
    hook.remove()
    return seen[0]


def test_positions_by_hand() -> None:
    table = positions(2, 1, 4, torch.device("cpu"))[0]
    expected = [math.sin(2), math.cos(2), math.sin(2 / 100), math.cos(2 / 100)]
    assert table.tolist() == pytest.approx(expected)


def test_each_side_learns_positions_of_its_own() -> None:
    model = model_of(positions="learned")
    for layer, words, places, ids in (
        (model.encoder[0], model.source_embedding, model.source_positions, SOURCE),
        (model.decoder[0], model.target_embedding, model.target_positions, TARGET),
    ):
        assert places.weight.shape == (SHAPE.max_length, SHAPE.d_model)
        x = input_of(layer, lambda: model(SOURCE, TARGET))
        for row, column in itertools.product(range(2), range(ids.size(1))):
            expected = words.weight[ids[row, column]] * 4 + places.weight[column]
            torch.testing.assert_close(x[row, column], expected)
    assert not torch.equal(model.source_positions.weight, model.target_positions.weight)


@pytest.mark.parametrize("places", ["sinusoidal", "learned"])
def test_sentences_beyond_the_longest_are_refused(places: str) -> None:
    model = model_of(positions=places, max_length=4)
    short, long = SOURCE[:, :4], SOURCE
    message = "^a sentence of 5 positions is too long: model.max_length is 4$"
    state = model.start(short)
    model.decode(TARGET, *model.encode(short))
    for _ in range(4):
        _, state = model.step(TARGET[:, 0], state)
    with pytest.raises(UserError, match=message):
        model.step(TARGET[:, 0], state)
    with pytest.raises(UserError, match=message):
        model.encode(long)
    with pytest.raises(UserError, match=message):
        model.decode(long, *model.encode(short))


def embed(shape: systems.Model, _: Tensor) -> Tensor:
    model = Transformer(shape, 11, 11).train()
    with torch.no_grad():
        for embedding in (model.source_embedding, model.source_positions):
            assert isinstance(embedding, nn.Embedding)
            embedding.weight.fill_(0.5)
    return input_of(model.encoder[0], lambda: model.encode(torch.full((4, 16), 5)))


def add(shape: systems.Model, x: Tensor) -> Tensor:
    return Sublayer(shape).train().after(torch.zeros_like(x), x)


def attend(shape: systems.Model, x: Tensor) -> Tensor:
    """Attention whose values and output say what its weights are."""
    attention = Attention(shape).train()
    with torch.no_grad():
        attention.input.weight.zero_()
        attention.input.weight[-16:] = attention.output.weight.copy_(torch.eye(16))
        attention.input.bias.zero_()
        attention.output.bias.zero_()
    return attention(torch.eye(16).expand(len(x), 16, 16)).detach()


def feed_forward(shape: systems.Model, x: Tensor) -> Tensor:
    network = FeedForward(shape).train()
    with torch.no_grad():
        for linear in (network.inner, network.outer):
            linear.weight.copy_(torch.eye(16))
            linear.bias.zero_()
    return network(x).detach()


# with the one number that each makes of ones (of 0.5 x sqrt(16) + 0.5; of 16 equal weights)
PLACES = {
    "embedding": (embed, 2.5),
    "residual": (add, 1.0),
    "attention": (attend, 1 / 16),
    "activation": (feed_forward, 1.0),
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("place", PLACES)
def test_each_dropout_drops_its_own_numbers_and_scales_the_others(kind: str, place: str) -> None:
    torch.manual_seed(3)
    dropout = dataclasses.replace(systems.NO_DROPOUT, **{kind: 0.25})
    shape = dataclasses.replace(
        SHAPE, heads=1, d_k=16, d_v=16, d_ff=16, norm="pre", positions="learned", dropout=dropout
    )
    make, number = PLACES[place]
    found = make(shape, torch.ones(4, 16, 16))
    if kind != place:
        torch.testing.assert_close(found, torch.full_like(found, number))
        return
    dropped = found == 0
    share = dropped.double().mean().item()  # of 1,024 numbers: 5 deviations are 0.068
    assert abs(share - 0.25) < 0.068
    kept = found[~dropped]
    torch.testing.assert_close(kept, torch.full_like(kept, number / 0.75))


def test_evaluation_drops_nothing() -> None:
    dropout = Dropout(embedding=0.5, residual=0.5, attention=0.5, activation=0.5)
    plain, dropping = model_of(), model_of(dropout=dropout, layer_drop=0.5)
    before = torch.get_rng_state()
    assert torch.equal(dropping(SOURCE, TARGET), plain(SOURCE, TARGET))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(dropping.train()(SOURCE, TARGET), plain(SOURCE, TARGET))


def test_without_dropout_training_draws_nothing() -> None:
    model = model_of().train()
    before = torch.get_rng_state()
    model(SOURCE, TARGET)
    assert torch.equal(torch.get_rng_state(), before)


def layers_run(model: Transformer) -> tuple[list[int], Tensor]:
    """Which layers run, the decoder's counted on from the encoder's, and the logits."""
    ran: list[int] = []
    layers = [*model.encoder, *model.decoder]
    hooks = [
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, layer in enumerate(layers)
    ]
    logits = model(SOURCE, TARGET)
    for hook in hooks:
        hook.remove()
    return ran, logits


def test_layer_drop_leaves_layers_out_of_training() -> None:
    model = model_of(encoder_layers=3, decoder_layers=3, layer_drop=0.25).train()
    together = torch.zeros(6, 6)  # how often two layers, or one, ran
    torch.manual_seed(3)
    for _ in range(400):
        ran, logits = layers_run(model)
        run = torch.zeros(6)
        run[ran] = 1
        together += run[:, None] * run
    # each layer by a draw of its own: 0.75, two of them 0.75^2; 5 deviations are 43 and 50
    expected = torch.full((6, 6), 225.0).fill_diagonal_(300)
    assert ((together - expected).abs() < 43).all()

    # without them the model is the one of the layers that ran
    model.encoder = nn.ModuleList(model.encoder[number] for number in ran if number < 3)
    model.decoder = nn.ModuleList(model.decoder[number - 3] for number in ran if number >= 3)
    assert len(ran) < 6
    assert torch.equal(model.eval()(SOURCE, TARGET), logits)


def test_layer_drop_follows_the_seed() -> None:
    model = model_of(encoder_layers=8, layer_drop=0.5).train()
    torch.manual_seed(5)
    first, logits = layers_run(model)
    torch.manual_seed(5)
    again, same = layers_run(model)
    assert first == again
    assert torch.equal(logits, same)
    runs = {tuple(layers_run(model)[0]) for _ in range(5)}
    assert len(runs) > 1


def test_without_any_layer_embeddings_go_through() -> None:
    model = model_of(layer_drop=1 - 1e-12).train()
    memory, _ = model.encode(SOURCE)
    place = positions(0, SOURCE.size(1), 16, torch.device("cpu"))
    assert torch.equal(memory, model.source_embedding(SOURCE) * 4 + place)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("bias", [True, False])
def test_attention_weights_are_what_the_kernel_mixes_by(norm: str, bias: bool) -> None:
    model = trained_model_of(norm=norm, bias=bias, d_k=3, d_v=5)
    memory, _ = model.encode(SOURCE)
    weights = model.attention_weights(SOURCE, TARGET)
    assert [len(layers) for layers in weights] == [2, 3, 3]
    for kind, layers in weights._asdict().items():
        stack = model.encoder if kind == "encoder" else model.decoder
        for found, layer in zip(layers, stack, strict=True):
            attention = layer.cross_attention if kind == "cross" else layer.self_attention
            if kind == "cross":
                _, values = attention.remember(memory)
            else:
                x = input_of(attention.input, lambda: model(SOURCE, TARGET))
                _, _, values = attention.project(x)
            mixture = input_of(attention.output, lambda: model(SOURCE, TARGET))
            torch.testing.assert_close((found @ values).transpose(1, 2).flatten(2), mixture)
            torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))
    padding = (SOURCE == PAD)[:, None, None, :]
    for found in (*weights.encoder, *weights.cross):
        assert ((found == 0) == padding).all()
    for found in weights.decoder:
        assert ((found == 0) == torch.ones_like(found).triu(1)).all()


def test_attention_weights_are_of_evaluation() -> None:
    with pytest.raises(AssertionError):
        model_of().train().attention_weights(SOURCE, TARGET)


def test_half_precision_stays_near() -> None:
    model = model_of(d_k=3, d_v=5, activation="gelu", positions="learned").float()
    expected = model(SOURCE, TARGET)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(SOURCE, TARGET)
        found.sum().backward()
        state = model.start(SOURCE)
        step, _ = model.step(TARGET[:, 0], state)
    torch.testing.assert_close(found.float(), expected, atol=0.1, rtol=0.1)
    torch.testing.assert_close(step.float()[:, WORDS:], expected[:, 0, WORDS:], atol=0.1, rtol=0.1)
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(("tie", "copies"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_weights_are_counted_once(tie: str, copies: int) -> None:
    model = model_of(tie=tie)
    attention = 4 * 16 * 16 + 4 * 16
    feed_forward = 2 * 16 * 24 + 24 + 16
    encoder = attention + feed_forward + 2 * 32
    decoder = 2 * attention + feed_forward + 3 * 32
    assert count_parameters(model) == copies * 11 * 16 + 2 * encoder + 3 * decoder


def test_biases_are_counted_where_they_are() -> None:
    # encoder: joint matrix and output 4 x 16, inner 24, outer 16; decoder: 4 x 16 more
    biases = 2 * (64 + 24 + 16) + 3 * (128 + 24 + 16)
    with_biases = count_parameters(model_of())
    assert count_parameters(model_of(bias=False)) == with_biases - biases
    assert count_parameters(model_of(target=13, output_bias=True)) == with_biases + 2 * 32 + 13


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


def test_the_course_notebook_has_as_many_parameters_as_it_prints() -> None:
    notebook = systems.model(
        encoder_layers=3,
        decoder_layers=3,
        d_model=256,
        d_ff=512,
        heads=8,
        d_k=32,
        d_v=32,
        positions="learned",
        max_length=100,
        output_bias=True,
        tie="none",
    )
    with torch.device("meta"):
        assert count_parameters(Transformer(notebook, 8015, 6192)) == 9_233_200


BASE = systems.model(
    encoder_layers=6, decoder_layers=6, d_model=512, d_ff=2048, heads=8, d_k=64, d_v=64
)
# Table 3's models, and their parameters in millions. No vocabulary fits them all: base and rows B
# and C agree with 40,931 to 41,161 joint units (d_ff 1024 sets the first, N 4 the last), big with
# 35,296 to 36,272 only. The text says "about 37000", with which base has 63.1 and big 214.3.
TABLE_3 = [
    ({}, 41_000, 65),
    ({"d_k": 16}, 41_000, 58),
    ({"d_k": 32}, 41_000, 60),
    ({"encoder_layers": 2, "decoder_layers": 2}, 41_000, 36),
    ({"encoder_layers": 4, "decoder_layers": 4}, 41_000, 50),
    ({"encoder_layers": 8, "decoder_layers": 8}, 41_000, 80),
    ({"d_model": 256, "d_k": 32, "d_v": 32}, 41_000, 28),
    ({"d_model": 1024, "d_k": 128, "d_v": 128}, 41_000, 168),
    ({"d_ff": 1024}, 41_000, 53),
    ({"d_ff": 4096}, 41_000, 90),
    ({"d_model": 1024, "d_ff": 4096, "heads": 16}, 36_000, 213),
]


@pytest.mark.parametrize(("changes", "vocabulary", "millions"), TABLE_3)
def test_the_papers_models_have_as_many_parameters_as_it_says(
    changes: dict[str, object], vocabulary: int, millions: int
) -> None:
    with torch.device("meta"):
        model = Transformer(dataclasses.replace(BASE, **changes), vocabulary, vocabulary)
    assert round(count_parameters(model) / 1e6) == millions


@pytest.mark.parametrize(
    ("heads", "size"),
    [(1, 512), (4, 128), (16, 32), (32, 16)],
)
def test_heads_alone_change_no_number_of_parameters(heads: int, size: int) -> None:
    with torch.device("meta"):
        base = Transformer(BASE, 41_000, 41_000)
        row = Transformer(
            dataclasses.replace(BASE, heads=heads, d_k=size, d_v=size), 41_000, 41_000
        )
    assert count_parameters(row) == count_parameters(base)


WIDE = {"d_model": 64, "d_ff": 96, "heads": 4, "d_k": 8, "d_v": 24, "positions": "learned"}
SMALL = math.sqrt(2 / (5 * 64))


def matrices(model: Transformer) -> dict[str, Tensor]:
    """Every matrix by name; of attention's joint ones query, key and value apart."""
    found = {}
    for name, parameter in model.named_parameters():
        if name.endswith("attention.input.weight"):
            parts = parameter[:32], parameter[32:64], parameter[64:]
            found |= {f"{name}.{part}": matrix for part, matrix in enumerate(parts)}
        elif parameter.dim() == 2:
            found[name] = parameter
    return found


@pytest.mark.parametrize("by", ["xavier", "scaled", "small"])
def test_initialisations_have_the_deviations_they_say(by: str) -> None:
    model = model_of(90, 70, initialisation=by, max_length=50, output_bias=True, **WIDE)
    found = matrices(model)
    assert len(found) == 5 + 2 * 6 + 3 * 10
    for name, matrix in found.items():
        layer, count = name.startswith(("encoder", "decoder")), matrix.numel()
        if by == "xavier" or (by == "scaled" and layer):
            bound = math.sqrt(6 / sum(matrix.shape))
            assert bound * (1 - 20 / count) < matrix.abs().max() <= bound, name
            deviation, spread = bound / math.sqrt(3), 0.45  # of a variance's estimate, x sqrt(n)
        else:
            deviation, spread = (SMALL if layer else 64**-0.5), 0.71
            assert matrix.abs().max() > 2.5 * deviation, name  # not uniform
        assert abs(matrix.std() / deviation - 1) < 5 * spread / math.sqrt(count), name
        assert abs(matrix.mean()) < 5 * deviation / math.sqrt(count), name
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            expected = torch.zeros_like if name.endswith("bias") else torch.ones_like
            assert torch.equal(parameter, expected(parameter)), name


def test_scaled_weights_are_those_of_earlier_versions() -> None:
    """Weights recorded when this was the only initialisation, of seed 3."""
    model = model_of(tie="all").float()
    layer = model.encoder[0].self_attention.input.weight
    recorded = [
        (layer[0, :2], [-0.2284114807844162, 0.4100283980369568]),
        (layer[47, :2], [0.13060085475444794, 0.3219335675239563]),
        (model.target_embedding.weight[2, :2], [0.2510867714881897, 0.13606323301792145]),
        (model.decoder[2].feed_forward.outer.weight[-1, -2:], [0.3130665123, 0.349132776260376]),
    ]
    for weights, expected in recorded:
        assert weights.tolist() == pytest.approx(expected, rel=1e-5)


def test_names_of_weights_stay() -> None:
    """Models that were stored before still load: new weights come with new settings alone."""
    linear = ["weight", "bias"]
    parts = ["feed_forward.inner", "feed_forward.outer", "first.norm", "second.norm"]
    own = ["self_attention.input", "self_attention.output"]
    cross = ["cross_attention.input", "cross_attention.output", "third.norm"]
    expected = {"source_embedding.weight", "target_embedding.weight", "projection.weight"}
    for stack, count, inside in (("encoder", 2, own), ("decoder", 3, own + cross)):
        for number, part, kind in itertools.product(range(count), inside + parts, linear):
            expected.add(f"{stack}.{number}.{part}.{kind}")
    assert set(model_of().state_dict()) == expected
    learned = model_of(positions="learned", output_bias=True, norm="pre").state_dict()
    norms = {f"{side}_norm.{kind}" for side in ("encoder", "decoder") for kind in linear}
    new = {"projection.bias", "source_positions.weight", "target_positions.weight"}
    assert set(learned) == expected | norms | new
