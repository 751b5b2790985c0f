"""Dropout of each kind applies to its own numbers, by its own rate; and layers are left out."""

import dataclasses
import math
from collections.abc import Callable
from itertools import permutations

import pytest
import torch
from torch import Tensor

import systems
from bleuprint.config.system import Dropout, Model
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layers import FeedForward, ResidualConnection
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.transformer import Transformer
from models import SHAPE, SOURCE, TARGET, input_of, model_of

# One head as wide as the model, so that attention and feed-forward can pass their input through.
PLAIN_SHAPE = dataclasses.replace(
    SHAPE, heads=1, d_k=16, d_v=16, d_ff=16, norm="pre", positional_encoding="learned"
)
ONES = torch.ones(4, 16, 16)


def embeddings_with_dropout(shape):
    """Return the embeddings of source and target, one after the other, with weights of 0.5."""
    model = Transformer(shape, 11, 11).train()
    embeddings = (
        model.source_embedding,
        model.source_positions,
        model.target_embedding,
        model.target_positions,
    )
    with torch.no_grad():
        for embedding in embeddings:
            embedding.weight.fill_(0.5)
    ids = torch.full((4, 16), 5)
    memory = torch.zeros(4, 16, 16)
    source = input_of(model.encoder[0], lambda: model.encode(ids))
    target = input_of(model.decoder[0], lambda: model.decode(ids, memory, None))
    return torch.cat((source, target))


def residual_with_dropout(shape):
    """Return zeros to which a residual connection has added ones."""
    return ResidualConnection(shape).train()(torch.zeros_like(ONES), lambda _: ONES)


def attention_weights_with_dropout(shape):
    """Return the weights of attention to equal keys: its output for values that name the keys."""
    attention = MultiHeadAttention(shape).train()
    with torch.no_grad():
        attention.in_proj.weight.zero_()
        attention.in_proj.weight[-16:] = torch.eye(16)
        attention.out_proj.weight.copy_(torch.eye(16))
        attention.in_proj.bias.zero_()
        attention.out_proj.bias.zero_()
    one_hot_positions = torch.eye(16).repeat(4, 1)
    return attention(one_hot_positions, PaddedLayout((4, 16))).detach()


def activations_with_dropout(shape):
    """Return the output of a feed-forward network that passes its positive inputs through."""
    network = FeedForward(shape).train()
    with torch.no_grad():
        for linear in (network.fc1, network.fc2):
            linear.weight.copy_(torch.eye(16))
            linear.bias.zero_()
    return network(ONES).detach()


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in the model where numbers are dropped.

    Attributes:
        compute: Returns the numbers of that place, for the settings of a model.
        number: What each of them is without dropout.
    """

    compute: Callable[[Model], Tensor]
    number: float


PLACES_BY_SETTING = {
    # A token's embedding, scaled by the root of the width 16, and that of its position.
    "embedding": Place(embeddings_with_dropout, 0.5 * math.sqrt(16) + 0.5),
    "residual": Place(residual_with_dropout, 1.0),
    "attention": Place(attention_weights_with_dropout, 1 / 16),
    "activation": Place(activations_with_dropout, 1.0),
}


def assert_dropped_at_rate(numbers, rate, number_without_dropout):
    """Fail unless the share `rate` of some numbers is 0, and the others are scaled."""
    is_dropped = numbers == 0
    dropped_share = is_dropped.double().mean().item()
    standard_deviation = math.sqrt(rate * (1 - rate) / numbers.numel())
    assert abs(dropped_share - rate) < 5 * standard_deviation
    kept = numbers[~is_dropped]
    expected = torch.full_like(kept, number_without_dropout / (1 - rate))
    torch.testing.assert_close(kept, expected)


@pytest.mark.parametrize("setting", PLACES_BY_SETTING)
def test_a_dropout_setting_drops_the_numbers_of_its_place(setting):
    """Each setting, such as `attention`, has a place in the model, such as attention weights.

    There all numbers are equal without dropout (`place.number`), so that dropped ones are visible.
    """
    torch.manual_seed(3)
    dropout = dataclasses.replace(systems.NO_DROPOUT, **{setting: 0.25})
    place = PLACES_BY_SETTING[setting]

    numbers = place.compute(dataclasses.replace(PLAIN_SHAPE, dropout=dropout))

    assert_dropped_at_rate(numbers, 0.25, place.number)


@pytest.mark.parametrize(("setting", "other_setting"), list(permutations(PLACES_BY_SETTING, 2)))
def test_a_dropout_setting_drops_no_numbers_of_other_places(setting, other_setting):
    """With rate 0.25 for one setting, all numbers in the place of another stay the same."""
    torch.manual_seed(3)
    dropout = dataclasses.replace(systems.NO_DROPOUT, **{setting: 0.25})
    other_place = PLACES_BY_SETTING[other_setting]

    numbers = other_place.compute(dataclasses.replace(PLAIN_SHAPE, dropout=dropout))

    torch.testing.assert_close(numbers, torch.full_like(numbers, other_place.number))


@pytest.mark.parametrize("setting", PLACES_BY_SETTING)
def test_four_dropout_settings_at_once_keep_their_own_rates(setting):
    """Each of the four places in the model must have zeros at the rate of its own setting."""
    # Multiples of 1/65,536, to which rates are rounded on CPUs.
    dropout = Dropout(embedding=0.125, residual=0.375, attention=0.5, activation=0.75)
    place = PLACES_BY_SETTING[setting]
    torch.manual_seed(4)

    numbers = place.compute(dataclasses.replace(PLAIN_SHAPE, dropout=dropout))

    assert_dropped_at_rate(numbers, getattr(dropout, setting), place.number)


def test_evaluation_drops_nothing():
    """Models are made in evaluation mode, with equal weights. No random number is drawn either."""
    all_dropout = Dropout(embedding=0.5, residual=0.5, attention=0.5, activation=0.5)
    without_dropout = model_of()
    with_dropout = model_of(dropout=all_dropout, layer_drop=0.5)
    state_before = torch.get_rng_state()

    logits = with_dropout(SOURCE, TARGET)

    assert torch.equal(logits, without_dropout(SOURCE, TARGET))
    assert torch.equal(torch.get_rng_state(), state_before)


def test_training_without_dropout_drops_nothing():
    """All rates of this model are 0. No random number is drawn either."""
    model = model_of()
    evaluation_logits = model(SOURCE, TARGET)
    state_before = torch.get_rng_state()

    training_logits = model.train()(SOURCE, TARGET)

    assert torch.equal(training_logits, evaluation_logits)
    assert torch.equal(torch.get_rng_state(), state_before)


def test_training_with_dropout_gives_other_logits():
    without_dropout = model_of().train()
    all_dropout = Dropout(embedding=0.5, residual=0.5, attention=0.5, activation=0.5)
    with_dropout = model_of(dropout=all_dropout, layer_drop=0.5).train()

    assert not torch.equal(with_dropout(SOURCE, TARGET), without_dropout(SOURCE, TARGET))


def run_and_record_layers(model):
    """Run a model on the example.

    Returns:
        The numbers of the layers that ran, the decoder's counted on from the encoder's; and the
        logits.
    """
    numbers_run: list[int] = []

    def recorder(number):
        return lambda *_: numbers_run.append(number)

    hooks = []
    for number, layer in enumerate([*model.encoder, *model.decoder]):
        hooks.append(layer.register_forward_hook(recorder(number)))
    logits = model(SOURCE, TARGET)
    for hook in hooks:
        hook.remove()
    return numbers_run, logits


def test_layer_drop_draws_for_each_layer_independently():
    """Each of six layers runs with probability 0.75, and each two layers with 0.75 x 0.75."""
    model = model_of(encoder_layers=3, decoder_layers=3, layer_drop=0.25).train()
    runs = 400
    # How often layers i and j ran in the same run; on the diagonal, how often layer i ran.
    joint_counts = torch.zeros(6, 6)

    torch.manual_seed(3)
    for _ in range(runs):
        numbers_run, _ = run_and_record_layers(model)
        has_run = torch.zeros(6)
        has_run[numbers_run] = 1
        joint_counts += torch.outer(has_run, has_run)

    expected_counts = torch.full((6, 6), runs * 0.75 * 0.75)
    expected_counts.fill_diagonal_(runs * 0.75)
    five_standard_deviations = 5 * math.sqrt(runs * 0.75 * 0.25)
    differences = (joint_counts - expected_counts).abs()
    assert (differences < five_standard_deviations).all()


def test_dropping_layers_gives_the_logits_of_a_model_without_these_layers():
    """The layers have the numbers 0 to 2 in the encoder and 3 to 5 in the decoder."""
    model = model_of(encoder_layers=3, decoder_layers=3, layer_drop=0.25).train()
    torch.manual_seed(3)
    numbers_run, logits = run_and_record_layers(model)
    while len(numbers_run) == 6:  # until at least one layer is dropped
        numbers_run, logits = run_and_record_layers(model)

    dropped_numbers = set(range(6)).difference(numbers_run)
    # The last layer is deleted first, so that the numbers of the layers before it stay the same.
    for number in sorted(dropped_numbers, reverse=True):
        if number < 3:
            del model.encoder[number]
        else:
            del model.decoder[number - 3]

    assert torch.equal(model.eval()(SOURCE, TARGET), logits)


@pytest.mark.parametrize("layer_drop", [0.1, 0.6])
def test_as_many_layers_run_as_layer_drop_keeps(layer_drop):
    """In 60 runs, each of 8 + 8 layers is dropped with probability `layer_drop`."""
    model = model_of(encoder_layers=8, decoder_layers=8, layer_drop=layer_drop).train()
    torch.manual_seed(6)
    layers_run = 0
    for _ in range(60):
        numbers_run, _ = run_and_record_layers(model)
        layers_run += len(numbers_run)

    draws = 60 * 16
    expected_layers_run = draws * (1 - layer_drop)
    standard_deviation = math.sqrt(draws * layer_drop * (1 - layer_drop))
    assert abs(layers_run - expected_layers_run) < 5 * standard_deviation


def test_equal_seeds_drop_the_same_layers():
    """Otherwise a training could not be repeated."""
    model = model_of(encoder_layers=8, layer_drop=0.5).train()

    torch.manual_seed(5)
    first_numbers, first_logits = run_and_record_layers(model)
    torch.manual_seed(5)
    second_numbers, second_logits = run_and_record_layers(model)

    assert first_numbers == second_numbers
    assert torch.equal(first_logits, second_logits)


def test_each_run_draws_anew_which_layers_it_drops():
    """Of five runs with one seed, at least two drop different layers of the eight."""
    model = model_of(encoder_layers=8, layer_drop=0.5).train()
    torch.manual_seed(5)

    choices = set()
    for _ in range(5):
        numbers_run, _ = run_and_record_layers(model)
        choices.add(tuple(numbers_run))

    assert len(choices) > 1
