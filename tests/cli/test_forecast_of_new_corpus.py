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
    """Return what `bleuprint inspect` finds in a corpus.

    Args:
        failure: Why the stages failed, or None.
        sets: The number of pairs of each set, by name.
        stages: For each stage, the number of pairs it reads, and those dropped by each rule.
    """
    stage_counts = {}
    for name, (pairs_in, dropped) in stages.items():
        stage_counts[name] = SimpleNamespace(pairs_in=pairs_in, dropped=dropped)
    return SimpleNamespace(
        stages=stage_counts, failure=failure, sets=sets or {}, has_all_pairs=True
    )


def test_a_rule_that_drops_more_than_a_tenth_of_the_pairs_is_noted():
    """Of 1,000 pairs, `length` drops exactly a tenth, `length_ratio` one pair more."""
    dropped_pairs = {"length": 100, "length_ratio": 101, "identical": 0}

    warnings = list(_rule_warnings(NEW, inspection(filter=(1000, dropped_pairs))))

    assert warnings == [
        "rule length_ratio of filter drops 101 of 1,000 pairs (10%). If they are good pairs, "
        "remove the rule from filter in params.yaml. To see some: bleuprint inspect mine"
    ]


@pytest.mark.parametrize(
    ("stage", "rule", "advice"),
    [
        pytest.param("clean", "empty", "(50%). To see some: bleuprint inspect mine", id="clean"),
        pytest.param(
            "dedup",
            "duplicate_pair",
            "The setting dedup in params.yaml says which repeated pairs are dropped. To see some: "
            "bleuprint inspect mine",
            id="dedup",
        ),
    ],
)
def test_the_note_on_a_rule_says_how_to_change_the_stage_of_the_rule(stage, rule, advice):
    """The rule drops 5 of 10 pairs. The rules of `clean` have no setting to change."""
    (warning,) = _rule_warnings(NEW, inspection(**{stage: (10, {rule: 5})}))

    assert warning.startswith(f"rule {rule} of {stage} drops 5 of 10 pairs (50%)")
    assert warning.endswith(advice)


def test_pairs_drawn_for_held_out_sets_do_not_count_as_dropped():
    """The stage `split` moves pairs to the validation and test sets; its other rules drop pairs."""
    removed_pairs = {"drawn_for_valid": 9, "drawn_for_test": 9, "other": 8}

    (warning,) = _rule_warnings(NEW, inspection(split=(10, removed_pairs)))

    assert warning.startswith("rule other of split drops 8 of 10 pairs (80%)")


@pytest.mark.parametrize(
    ("failure", "dropped", "train", "expected"),
    [
        pytest.param("all pairs dropped", 0, 900, True, id="a stage failed"),
        pytest.param(None, 501, 79, True, id="more than half dropped, 99 left"),
        pytest.param(None, 501, 80, False, id="more than half dropped, 100 left"),
        pytest.param(None, 500, 79, False, id="half dropped, 99 left"),
    ],
)
def test_too_few_pairs_are_left_if_over_half_are_dropped_and_under_100_remain(
    failure, dropped, train, expected
):
    """A rule drops some of 1,000 pairs. `train` pairs are left for training, 20 are held out."""
    sets = {"train": train, "valid": 10, "test.held-out": 10}

    inspected_corpus = inspection(failure, sets, filter=(1000, {"language_id": dropped}))

    assert _leaves_too_few(inspected_corpus) is expected


@pytest.mark.parametrize(
    ("minutes", "expected_text"),
    [
        pytest.param(0.0, "1 minute", id="at least one"),
        pytest.param(1.4, "1 minute", id="rounded down"),
        pytest.param(1.6, "2 minutes", id="rounded up"),
        pytest.param(90.2, "90 minutes", id="more than an hour"),
        pytest.param(1234.0, "1,234 minutes", id="thousands"),
    ],
)
def test_a_time_is_printed_in_whole_minutes(minutes, expected_text):
    assert _minutes(minutes) == expected_text


@pytest.mark.parametrize(
    ("has_all_pairs", "first_word"),
    [pytest.param(True, "", id="all pairs"), pytest.param(False, "about ", id="sample")],
)
def test_counts_estimated_from_a_sample_begin_with_about(capsys, has_all_pairs, first_word):
    """The rules are tried on all pairs of a small text, but on a sample of a large one."""
    remaining_pairs = RemainingPairs(train=800, valid=60, test=40)

    _print_remaining_pairs(NEW, SimpleNamespace(has_all_pairs=has_all_pairs), remaining_pairs)

    # 800 + 60 + 40 = 900
    assert capsys.readouterr().out == (
        f"{first_word}900 of 1,000 pairs remain after the rules: train 800, valid 60, test 40\n"
    )


@pytest.mark.parametrize(("test_pairs", "precision"), [(1000, "1.6"), (4000, "0.8"), (100, "5.1")])
def test_the_expected_precision_of_bleu_depends_on_the_test_set(test_pairs, precision):
    """It is ±1.6 for 1,000 pairs and scales with 1 / sqrt(pairs): ±1.6 / 2 for 4,000 pairs."""
    remaining_pairs = RemainingPairs(train=10_000, valid=50, test=test_pairs)

    (line,) = _quality_forecast(remaining_pairs)

    assert line.startswith(
        f"a test set of {test_pairs:,} pairs measures BLEU to about ±{precision}"
    )


def test_the_precision_of_bleu_is_omitted_below_100_test_pairs():
    """Another note says that such a test set is too small."""
    lines = list(_quality_forecast(RemainingPairs(train=10_000, valid=50, test=99)))

    assert lines == []


def test_fewer_than_10000_training_pairs_are_noted_as_few():
    (line,) = _quality_forecast(RemainingPairs(train=9_999, valid=50, test=99))

    assert line.startswith("9,999 training pairs are few. ")


TEXT = TextSize(pairs=100_000, source_length=10.0, target_length=10.0, vocabulary_size=1000)


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


def total_line(training_minutes, cores):
    """Return the line that says how long all stages take, with 100,000 pairs of text.

    Args:
        training_minutes: The time of all trainings. Other stages take 3 minutes for any text, and
            1 minute for every 50,000 pairs: 3 + 2 minutes.
        cores: The cores, such as `2 idle cores`.
    """
    minutes = training_minutes + 3 + 2
    return (
        f"forecast for mine, without other corpora: {minutes} minutes, on {cores} of this machine"
    )


def test_the_forecast_has_a_line_for_each_training(forecast_lines):
    """The text has 100,000 pairs and an update takes one pair: 250,000 updates are 2.5 epochs.

    On two cores, each portable training uses one.
    """
    systems = {
        "a": system("portable", minutes_on_one_core=60, updates=250_000),
        "b": system("portable", minutes_on_one_core=30, updates=1),
    }

    lines = forecast_lines(systems, cores=2)

    assert lines[:2] == [
        "a trains for at most 250,000 updates, 2.5 epochs: 60 minutes",
        "b trains for at most 1 update, 0.0 epochs: 30 minutes",
    ]


def test_the_forecast_ends_with_the_time_of_all_stages_and_advice(forecast_lines):
    """total_line adds the time of the other stages to that of the training."""
    systems = {"a": system("portable", minutes_on_one_core=60)}

    lines = forecast_lines(systems, cores=2)

    assert lines[1:] == [
        total_line(training_minutes=60, cores="2 idle cores"),
        "For a better system, raise its train.max_updates in params.yaml: it trains longer",
    ]


@pytest.mark.parametrize(
    ("systems", "cores", "training_minutes"),
    [
        pytest.param(
            {
                "a": system("portable", minutes_on_one_core=60),
                "b": system("portable", minutes_on_one_core=30),
            },
            2,
            60,
            id="portable trainings run at the same time, each on a core",
        ),
        pytest.param(
            {
                "a": system("portable", minutes_on_one_core=60),
                "b": system("portable", minutes_on_one_core=60),
                "c": system("portable", minutes_on_one_core=60),
                "d": system("portable", minutes_on_one_core=60),
            },
            2,
            4 * 60 // 2,
            id="more portable trainings than cores take their sum divided by the cores",
        ),
        pytest.param(
            {
                "a": system("native", minutes_on_one_core=60),
                "b": system("native", minutes_on_one_core=30),
            },
            2,
            60 // 2 + 30 // 2,
            id="native trainings use all cores and run one after another",
        ),
        pytest.param(
            {
                "a": system("portable", minutes_on_one_core=60),
                "b": system("native", minutes_on_one_core=30),
            },
            1,
            60 + 30,
            id="on one core all trainings run one after another",
        ),
    ],
)
def test_the_time_of_all_trainings_depends_on_how_they_share_the_cores(
    forecast_lines, systems, cores, training_minutes
):
    """A portable training uses one core, a native training uses all."""
    lines = forecast_lines(systems, cores=cores)

    described_cores = "1 idle core" if cores == 1 else f"{cores} idle cores"
    assert lines[-2] == total_line(training_minutes, cores=described_cores)


def test_a_native_training_uses_all_cores(forecast_lines):
    """60 minutes on one core are 30 on two."""
    systems = {"a": system("native", minutes_on_one_core=60, updates=1)}

    lines = forecast_lines(systems, cores=2)

    assert lines[0] == "a trains for at most 1 update, 0.0 epochs: 30 minutes"


def test_no_time_is_forecast_for_a_training_that_patience_ends(forecast_lines):
    """Such a training has no limit of updates; it ends when validation stops improving."""
    systems = {"a": system("native", minutes_on_one_core=60, updates=None)}

    lines = forecast_lines(systems)

    assert lines == [
        "a trains until train.patience stops it",
        "For a better system, raise its train.max_updates in params.yaml: it trains longer",
    ]


def test_no_time_is_forecast_on_a_machine_with_a_gpu(forecast_lines):
    """The time per pair was measured on CPUs only."""
    systems = {"a": system("native", minutes_on_one_core=60, updates=2)}

    lines = forecast_lines(systems, has_gpu=True)

    assert lines == [
        "a trains for at most 2 updates, 0.0 epochs",
        "For a better system, raise its train.max_updates in params.yaml: it trains longer",
    ]
