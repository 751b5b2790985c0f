"""Trainings fitted to a text: their lengths, the forecast, and recipe own."""

import math
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

import systems
from bleuprint.config.system import System
from bleuprint.model.flops import training_flops
from bleuprint.runtime.schema import validate_document
from bleuprint.training import fitted_systems
from bleuprint.training.fitted_systems import TextSize, fitted_systems_yaml
from recipes import SETTINGS
from root import ROOT


def fitted_system(text, name, path):
    """Return the settings of `small` or `medium`, which `bleuprint new-corpus` fits to a text.

    Args:
        text: The size of the text.
        name: The name of the system.
        path: The path of params.yaml, for error messages.
    """
    content = YAML(typ="safe", pure=True).load(fitted_systems_yaml(text))["systems"]
    settings = content["small"]
    if name == "medium":
        # It is `like: small`, and only its differences are written.
        settings["model"].update(content["medium"]["model"])
        settings["train"].update(content["medium"]["train"])
    return validate_document(System, settings, path)


def test_the_recipe_own_ends_with_the_systems_for_a_text_of_9000_pairs():
    """The recipe is an example of what `bleuprint new-corpus` writes for a user's own text."""
    recipe = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")
    text = TextSize(pairs=9000, source_length=17.0, target_length=17.0, vocabulary_size=4000)

    systems_of_text = fitted_systems_yaml(text)

    assert recipe.endswith(f"\n{systems_of_text}")
    assert list(SETTINGS["own"].runs) == ["small", "medium"]


@pytest.mark.parametrize("name", ["small", "medium"])
def test_a_tiny_text_has_two_updates_per_epoch(tmp_path, name):
    """An update as large as for long texts would contain the whole text several times."""
    text = TextSize(pairs=120, source_length=5.0, target_length=5.0, vocabulary_size=200)

    train = fitted_system(text, name, tmp_path / "params.yaml").train

    half_of_the_tokens = 120 * 5 / 2
    assert train.tokens_per_update == train.max_tokens == half_of_the_tokens


def text_of(pairs):
    """Return the size of a text with this number of pairs, of 20 and 18 tokens."""
    return TextSize(pairs=pairs, source_length=20.0, target_length=18.0, vocabulary_size=6000)


def seconds_of_training(text, system, flops_per_second):
    """Compute how long one core trains.

    Args:
        text: The size of the text.
        system: The settings of the system.
        flops_per_second: The floating-point operations per second of the core.
    """
    flops_per_pair = training_flops(
        system.model, text.vocabulary_size, text.source_length, text.target_length
    )
    return trained_pairs(text, system.train) * flops_per_pair / flops_per_second


SHORT_TEXTS = [text_of(100), text_of(1000), text_of(10_000)]
LONG_TEXTS = [text_of(100_000), text_of(1_000_000), text_of(50_000_000)]


def pairs_id(text):
    """Return the name of a test by the number of pairs of its text."""
    return f"{text.pairs} pairs"


for_each_text = pytest.mark.parametrize("text", SHORT_TEXTS + LONG_TEXTS, ids=pairs_id)
for_each_long_text = pytest.mark.parametrize("text", LONG_TEXTS, ids=pairs_id)


def trained_pairs(text, train):
    """Return how many pairs a training sees; a pair counts in each epoch again."""
    return train.max_updates * train.tokens_per_update / text.target_length


# The floating-point operations per second with which one core trains each system.
for_each_system = pytest.mark.parametrize(
    ("name", "flops_per_second"), [("small", 4.5e10), ("medium", 5.5e10)]
)


@for_each_system
@for_each_text
def test_a_fitted_training_takes_20_minutes_of_one_core_at_most(
    text, name, flops_per_second, tmp_path
):
    """With preparation, translation and report, a user's first experiment takes half an hour."""
    system = fitted_system(text, name, tmp_path / "params.yaml")

    seconds = seconds_of_training(text, system, flops_per_second)

    # The number of updates is rounded to a multiple of 20, which adds 3% at most.
    assert seconds <= 20 * 60 * 1.03


@for_each_system
@for_each_long_text
def test_a_fitted_training_on_a_long_text_takes_the_whole_20_minutes(
    text, name, flops_per_second, tmp_path
):
    """The texts have 100,000 pairs or more; shorter ones end earlier, after 100 epochs."""
    system = fitted_system(text, name, tmp_path / "params.yaml")

    seconds = seconds_of_training(text, system, flops_per_second)

    # The number of updates is rounded to a multiple of 20, which removes 3% at most.
    assert seconds >= 20 * 60 * 0.97


@pytest.mark.parametrize("name", ["small", "medium"])
@for_each_text
def test_a_fitted_training_has_100_epochs_at_most(text, name, tmp_path):
    """A text of a few pairs would otherwise be repeated thousands of times.

    The shortest fitted training has 20 updates, even if these are more epochs.
    """
    train = fitted_system(text, name, tmp_path / "params.yaml").train

    epochs = trained_pairs(text, train) / text.pairs

    # The number of updates is rounded to a multiple of 20, which adds one or two epochs at most.
    most_epochs = 101.5
    assert epochs <= most_epochs or train.max_updates == 20


@pytest.mark.parametrize("name", ["small", "medium"])
@for_each_text
def test_a_fitted_training_is_validated_20_times(text, name, tmp_path):
    """Whatever the size of the text, learning curves have 20 points, and patience can act."""
    train = fitted_system(text, name, tmp_path / "params.yaml").train

    assert train.max_updates == 20 * train.validate_interval


@pytest.mark.parametrize("name", ["small", "medium"])
@for_each_text
def test_the_warmup_of_a_fitted_training_ends_in_its_first_quarter(text, name, tmp_path):
    """A longer warmup would leave a short training too few updates at a high learning rate."""
    train = fitted_system(text, name, tmp_path / "params.yaml").train

    assert train.lr_schedule.inverse_sqrt.warmup_updates < train.max_updates / 4


@pytest.mark.parametrize("name", ["small", "medium"])
@for_each_text
def test_a_fitted_training_stops_early_and_averages_its_best_checkpoints(text, name, tmp_path):
    """It stops after five validations without improvement, and averages the best four."""
    system = fitted_system(text, name, tmp_path / "params.yaml")

    assert system.train.patience == 5
    assert system.train.keep_best == 4
    assert system.average.best == 4


@pytest.mark.parametrize(
    ("settings", "expected_updates", "expected_epochs"),
    [
        pytest.param(
            {"tokens_per_update": 200, "max_updates": 100},
            100,
            2.0,
            id="20 pairs of 10 tokens, 100 times",
        ),
        pytest.param(
            {"tokens_per_update": 200, "max_updates": 100, "max_epochs": 1},
            50,
            1.0,
            id="one epoch of 20 pairs per update",
        ),
        pytest.param(
            {
                "tokens_per_update": None,
                "sentences_per_update": 30,
                "max_updates": 1000,
                "max_epochs": 3,
            },
            3 * 34,
            3.0,
            id="three epochs of 33 updates of 30 pairs, and one of 10 pairs",
        ),
    ],
)
def test_updates_and_epochs_of_a_training_on_1000_pairs(
    settings, expected_updates, expected_epochs
):
    """Each pair has 10 target tokens, so that 200 tokens are 20 pairs."""
    text = TextSize(pairs=1000, source_length=20.0, target_length=10.0, vocabulary_size=500)
    train = systems.train(max_tokens=100, patience=1, **settings)

    target_tokens = 1000 * 10
    updates = train.update_limit(target_tokens, 1000)

    assert updates == expected_updates
    assert fitted_systems.epochs_in_updates(train, text, updates) == expected_epochs


def test_a_training_that_only_patience_ends_has_an_unknown_number_of_updates():
    """Without a limit of updates or epochs, it goes on as long as validations improve."""
    train = systems.train(
        max_tokens=100,
        patience=1,
        tokens_per_update=None,
        sentences_per_update=30,
        max_updates=None,
        max_epochs=None,
    )

    update_limit = train.update_limit(10_000, 1000)  # target tokens and pairs of the text

    assert update_limit is None


@pytest.fixture
def small_text():
    """Return the size of a text of 1,000 pairs."""
    return TextSize(pairs=1000, source_length=20.0, target_length=10.0, vocabulary_size=500)


@pytest.fixture
def small_system(small_text, tmp_path):
    """Return the system `small` for this text, without portable arithmetic, which is slower."""
    system = fitted_system(small_text, "small", tmp_path / "params.yaml")
    return replace(system, arithmetic="native")


def test_the_training_time_of_a_pair_is_measured(small_text, small_system):
    seconds = fitted_systems.seconds_per_pair(small_system, small_text, threads=1)

    assert math.isfinite(seconds)
    assert seconds > 0


def test_the_forecast_of_a_training_grows_with_its_updates(small_text, small_system, monkeypatch):
    """Training on a pair takes 0.5 seconds here, instead of the time measured on this machine."""
    seconds_per_pair = 0.5
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: seconds_per_pair)

    seconds = fitted_systems.training_seconds(
        small_system, small_text, valid_pairs=0, updates=100, threads=1
    )

    pairs_per_update = small_system.train.tokens_per_update / small_text.target_length
    assert seconds == pytest.approx(100 * pairs_per_update * seconds_per_pair)


def test_the_forecast_of_a_training_grows_with_its_validations(
    small_text, small_system, monkeypatch
):
    """Training on a pair takes 0.5 seconds here; validating one takes 1.3 times as long."""
    seconds_per_pair = 0.5
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: seconds_per_pair)
    without_validations = fitted_systems.training_seconds(
        small_system, small_text, valid_pairs=0, updates=100, threads=1
    )

    with_validations = fitted_systems.training_seconds(
        small_system, small_text, valid_pairs=50, updates=100, threads=1
    )

    validations = 100 / small_system.train.validate_interval
    expected_difference = validations * 50 * 1.3 * seconds_per_pair
    assert with_validations - without_validations == pytest.approx(expected_difference)


def test_systems_for_a_gpu_lack_the_line_that_sets_portable_arithmetic(small_text):
    """Portable arithmetic gives the same weights on all CPUs; GPUs cannot compute it."""
    cpu_lines = fitted_systems_yaml(small_text).splitlines()
    gpu_lines = fitted_systems_yaml(small_text, is_portable=False).splitlines()

    (removed_line,) = set(cpu_lines) - set(gpu_lines)

    assert removed_line.startswith("    arithmetic: portable")
