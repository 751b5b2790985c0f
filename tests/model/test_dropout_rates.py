"""Dropout of every kind, each where it belongs, and layers left out."""

import dataclasses
import math

import pytest
import torch

import systems
from bleuprint.config.system import Dropout
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layers import FeedForward, ResidualConnection
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.transformer import Transformer
from models import SHAPE, SOURCE, TARGET, input_of, model_of


def embed(shape, _):
    """The embeddings of both sides, one after the other."""
    model = Transformer(shape, 11, 11).train()
    with torch.no_grad():
        for side in ("source", "target"):
            for kind in ("embedding", "positions"):
                getattr(model, f"{side}_{kind}").weight.fill_(0.5)
    ids, memory = torch.full((4, 16), 5), torch.zeros(4, 16, 16)
    source = input_of(model.encoder[0], lambda: model.encode(ids))
    return torch.cat((source, input_of(model.decoder[0], lambda: model.decode(ids, memory, None))))


def add(shape, x):
    return ResidualConnection(shape).train()(torch.zeros_like(x), lambda _: x)


def attend(shape, x):
    """Attention whose values and output say what its weights are."""
    attention = MultiHeadAttention(shape).train()
    with torch.no_grad():
        attention.in_proj.weight.zero_()
        attention.in_proj.weight[-16:] = attention.out_proj.weight.copy_(torch.eye(16))
        attention.in_proj.bias.zero_()
        attention.out_proj.bias.zero_()
    return attention(torch.eye(16).repeat(len(x), 1), PaddedLayout((len(x), 16))).detach()


def feed_forward(shape, x):
    network = FeedForward(shape).train()
    with torch.no_grad():
        for linear in (network.fc1, network.fc2):
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
def test_each_dropout_drops_its_own_numbers_and_scales_the_others(kind, place):
    torch.manual_seed(3)
    dropout = dataclasses.replace(systems.NO_DROPOUT, **{kind: 0.25})
    shape = dataclasses.replace(
        SHAPE,
        heads=1,
        d_k=16,
        d_v=16,
        d_ff=16,
        norm="pre",
        positional_encoding="learned",
        dropout=dropout,
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


@pytest.mark.parametrize("place", PLACES)
def test_each_dropout_has_the_rate_of_its_own_setting(place):
    """All four at once, with rates that are shares of 1/65,536 without rounding."""
    rates = Dropout(embedding=0.125, residual=0.375, attention=0.5, activation=0.75)
    shape = dataclasses.replace(
        SHAPE,
        heads=1,
        d_k=16,
        d_v=16,
        d_ff=16,
        norm="pre",
        positional_encoding="learned",
        dropout=rates,
    )
    rate = getattr(rates, place)
    make, number = PLACES[place]
    torch.manual_seed(4)
    found = make(shape, torch.ones(4, 16, 16))
    is_dropped = found == 0
    deviation = math.sqrt(rate * (1 - rate) / found.numel())
    assert abs(is_dropped.double().mean().item() - rate) < 5 * deviation
    kept = found[~is_dropped]
    torch.testing.assert_close(kept, torch.full_like(kept, number / (1 - rate)))


def test_evaluation_drops_nothing_nor_does_training_without_dropout():
    dropout = Dropout(embedding=0.5, residual=0.5, attention=0.5, activation=0.5)
    plain, dropping = model_of(), model_of(dropout=dropout, layer_drop=0.5)
    before = torch.get_rng_state()
    assert torch.equal(dropping(SOURCE, TARGET), plain.train()(SOURCE, TARGET))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(dropping.train()(SOURCE, TARGET), plain(SOURCE, TARGET))


def layers_run(model):
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


def test_layer_drop_leaves_layers_out_of_training():
    model = model_of(encoder_layers=3, decoder_layers=3, layer_drop=0.25).train()
    together = torch.zeros(6, 6)  # how often two layers, or one, ran
    torch.manual_seed(3)
    for _ in range(400):
        ran, logits = layers_run(model)
        run = torch.zeros(6)
        run[ran] = 1
        together += run[:, None] * run
    # each layer by a draw of its own: 0.75, two of them 0.75^2; 5 deviations are 43 and 50
    assert ((together - torch.full((6, 6), 225.0).fill_diagonal_(300)).abs() < 43).all()

    # without them the model is the one of the layers that ran
    for number in sorted({*range(6)}.difference(ran), reverse=True):
        if number < 3:
            del model.encoder[number]
        else:
            del model.decoder[number - 3]
    assert len(ran) < 6
    assert torch.equal(model.eval()(SOURCE, TARGET), logits)


@pytest.mark.parametrize(("rate", "runs"), [(0.1, 864), (0.6, 384)])
def test_as_many_layers_run_as_layer_drop_keeps(rate, runs):
    model = model_of(encoder_layers=8, decoder_layers=8, layer_drop=rate).train()
    torch.manual_seed(6)
    found = 0
    for _ in range(60):
        ran, _ = layers_run(model)
        found += len(ran)
    # of 60 x 16 layers, each with a draw of its own
    deviation = math.sqrt(960 * rate * (1 - rate))
    assert abs(found - runs) < 5 * deviation


def test_layer_drop_follows_the_seed():
    model = model_of(encoder_layers=8, layer_drop=0.5).train()
    torch.manual_seed(5)
    first, logits = layers_run(model)
    torch.manual_seed(5)
    again, same = layers_run(model)
    assert first == again
    assert torch.equal(logits, same)
    assert len({tuple(layers_run(model)[0]) for _ in range(5)}) > 1
