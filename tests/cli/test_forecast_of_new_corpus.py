"""What new-corpus says of rules that drop much, of the time of trainings, and of BLEU."""

from types import SimpleNamespace

import pytest

from bleuprint.cli import new_corpus
from bleuprint.cli.measured_corpus import RemainingPairs, _leaves_too_few
from bleuprint.cli.new_corpus import (
    _minutes,
    _print_remaining_pairs,
    _quality_forecast,
    _rule_warnings,
    _training_forecast,
)
from bleuprint.runtime import environment
from bleuprint.training import fitted_systems
from bleuprint.training.fitted_systems import TextSize

NEW = SimpleNamespace(name="mine", pairs=1000)


def inspection(failure=None, sets=None, **stages):
    counted = {
        name: SimpleNamespace(pairs_in=pairs, dropped=dropped)
        for name, (pairs, dropped) in stages.items()
    }
    return SimpleNamespace(stages=counted, failure=failure, sets=sets or {}, has_all_pairs=True)


def test_a_rule_that_drops_more_than_a_tenth_is_named():
    dropped = {"length": 100, "length_ratio": 101, "identical": 0}
    (warning,) = _rule_warnings(NEW, inspection(filter=(1000, dropped)))
    assert warning == (
        "rule length_ratio of filter drops 101 of 1,000 pairs (10%). If they are good pairs, "
        "remove the rule from filter in params.yaml. To see some: bleuprint inspect mine"
    )


def test_the_advice_on_a_rule_is_that_of_its_stage():
    stages = {
        "clean": (10, {"empty": 5}),
        "dedup": (10, {"duplicate_pair": 5}),
        "split": (10, {"drawn_for_valid": 9, "drawn_for_test": 9, "other": 8}),
    }
    of_clean, of_dedup, of_split = _rule_warnings(NEW, inspection(**stages))
    assert of_clean.endswith("(50%). To see some: bleuprint inspect mine")
    assert "The setting dedup in params.yaml says which repeated pairs are dropped. To" in of_dedup
    assert of_split.startswith("rule other of split drops 8 of 10 pairs (80%)")


@pytest.mark.parametrize(
    ("failure", "dropped", "train", "expected"),
    [
        ("nothing left", 0, 900, True),
        (None, 501, 79, True),
        (None, 501, 80, False),
        (None, 500, 79, False),
    ],
)
def test_when_too_few_pairs_are_left(failure, dropped, train, expected):
    """By hand: more than half of 1,000 pairs are dropped, and fewer than 100 are left."""
    found = inspection(
        failure,
        {"train": train, "valid": 10, "test.held-out": 10},
        filter=(1000, {"language_id": dropped}),
    )
    assert _leaves_too_few(found) is expected


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0.0, "1 minute"),
        (1.4, "1 minute"),
        (1.6, "2 minutes"),
        (90.2, "90 minutes"),
        (1234.0, "1,234 minutes"),
    ],
)
def test_a_time_is_in_whole_minutes(minutes, said):
    assert _minutes(minutes) == said


def test_numbers_of_a_sample_are_estimates(capsys):
    remaining = RemainingPairs(train=800, valid=60, test=40)
    for has_all_pairs in (True, False):
        _print_remaining_pairs(NEW, SimpleNamespace(has_all_pairs=has_all_pairs), remaining)
    line = "900 of 1,000 pairs remain after the rules: train 800, valid 60, test 40"
    assert capsys.readouterr().out.splitlines() == [line, f"about {line}"]


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        (10_000, 1000, ["BLEU will be known to about ±1.6, by a test set of 1,000 pairs"]),
        (10_000, 4000, ["BLEU will be known to about ±0.8, by a test set of 4,000 pairs"]),
        (10_000, 100, ["BLEU will be known to about ±5.1, by a test set of 100 pairs"]),
        (10_000, 99, []),
        (9_999, 99, ["9,999 training pairs are few: "]),
    ],
)
def test_what_to_expect(train, test, said):
    found = list(_quality_forecast(RemainingPairs(train=train, valid=50, test=test)))
    assert len(found) == len(said)
    for line, start in zip(found, said, strict=True):
        assert line.startswith(start)


# What the forecast adds to the trainings: 3 minutes for any text, and 1 minute for every 50,000
# pairs. For TEXT, these are 3 + 2 minutes.
OTHER_STAGES_MINUTES = 5
TEXT = TextSize(pairs=100_000, source_length=10.0, target_length=10.0, vocabulary_size=1000)
ADVICE = "for a better system, in more hours: raise its train.max_updates in params.yaml"


def system(arithmetic, minutes_on_one_core, updates=1):
    """A system of whose training only this is known.

    Args:
        arithmetic: "portable" (its training uses one core) or "native" (all cores).
        minutes_on_one_core: How long the training takes on one core; on n cores, 1/n of it.
        updates: The most updates of the training; None if patience ends it.
    """
    train = SimpleNamespace(
        update_limit=lambda _tokens, _pairs: updates,
        minutes_on_one_core=minutes_on_one_core,
    )
    return SimpleNamespace(arithmetic=arithmetic, train=train)


def seconds_of(system, _text, _valid, _updates, threads):
    """Stands in for `fitted_systems.training_seconds`."""
    return system.train.minutes_on_one_core * 60 / threads


@pytest.fixture
def forecast_lines(monkeypatch):
    """A function that returns the lines of the forecast for systems on a machine."""

    def lines(systems, cores=2, has_gpu=False):
        settings = SimpleNamespace(trained_systems_on=lambda _: systems)
        monkeypatch.setattr(new_corpus, "load_settings", lambda: settings)
        monkeypatch.setattr(environment, "worker_count", lambda: cores)
        monkeypatch.setattr(environment, "has_gpu", lambda: has_gpu)
        monkeypatch.setattr(
            fitted_systems, "epochs_in_updates", lambda _, text, updates: updates / text.pairs
        )
        monkeypatch.setattr(fitted_systems, "training_seconds", seconds_of)
        return list(_training_forecast("mine", TEXT, 50))

    return lines


def total_line(minutes, cores):
    """The line that says how long all stages take."""
    return (
        f"forecast for mine, without other corpora: {minutes} minutes, on {cores} of this machine"
    )


def test_each_training_has_its_updates_passes_and_minutes(forecast_lines):
    """By hand: 250,000 updates, of a pair each here, are 2.5 passes over 100,000 pairs."""
    lines = forecast_lines(
        {
            "a": system("portable", minutes_on_one_core=60, updates=250_000),
            "b": system("portable", minutes_on_one_core=30, updates=1),
        }
    )
    assert lines[:2] == [
        "a trains for at most 250,000 updates, 2.5 epochs: 60 minutes",
        "b trains for at most 1 update, 0.0 epochs: 30 minutes",
    ]


def test_the_forecast_ends_with_the_time_of_all_stages_and_advice(forecast_lines):
    lines = forecast_lines({"a": system("portable", minutes_on_one_core=60)})
    assert lines[1:] == [total_line(60 + OTHER_STAGES_MINUTES, "2 idle cores"), ADVICE]


def test_portable_trainings_share_the_cores(forecast_lines):
    """By hand: beside each other on two cores, 60 and 30 minutes take 60."""
    lines = forecast_lines(
        {
            "a": system("portable", minutes_on_one_core=60),
            "b": system("portable", minutes_on_one_core=30),
        },
        cores=2,
    )
    assert lines[-2] == total_line(60 + OTHER_STAGES_MINUTES, "2 idle cores")


def test_many_portable_trainings_take_their_sum_over_the_cores(forecast_lines):
    """By hand: 4 trainings of 60 minutes take 4 * 60 / 2 = 120 minutes on two cores."""
    systems = {}
    for name in ("a", "b", "c", "d"):
        systems[name] = system("portable", minutes_on_one_core=60)
    lines = forecast_lines(systems, cores=2)
    assert lines[-2] == total_line(120 + OTHER_STAGES_MINUTES, "2 idle cores")


def test_other_trainings_use_all_cores(forecast_lines):
    """By hand: 60 minutes on one core are 30 on two."""
    lines = forecast_lines({"a": system("native", minutes_on_one_core=60)}, cores=2)
    assert lines[0] == "a trains for at most 1 update, 0.0 epochs: 30 minutes"


def test_other_trainings_run_one_after_another(forecast_lines):
    """By hand: 60 and 30 minutes on one core are 30 and 15 on two, 45 in all."""
    lines = forecast_lines(
        {
            "a": system("native", minutes_on_one_core=60),
            "b": system("native", minutes_on_one_core=30),
        },
        cores=2,
    )
    assert lines[-2] == total_line(45 + OTHER_STAGES_MINUTES, "2 idle cores")


def test_on_one_core_all_trainings_are_one_after_another(forecast_lines):
    """By hand: 60 and 30 minutes are 90."""
    lines = forecast_lines(
        {
            "a": system("portable", minutes_on_one_core=60),
            "b": system("native", minutes_on_one_core=30),
        },
        cores=1,
    )
    assert lines[-2] == total_line(90 + OTHER_STAGES_MINUTES, "1 idle core")


def test_a_training_that_patience_ends_has_no_forecast(forecast_lines):
    lines = forecast_lines({"a": system("native", minutes_on_one_core=60, updates=None)})
    assert lines == ["a trains until train.patience ends it", ADVICE]


def test_for_a_gpu_there_is_no_forecast(forecast_lines):
    systems = {"a": system("native", minutes_on_one_core=60, updates=2)}
    lines = forecast_lines(systems, has_gpu=True)
    assert lines == ["a trains for at most 2 updates, 0.0 epochs", ADVICE]
