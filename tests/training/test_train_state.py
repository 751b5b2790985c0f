"""When a training stops, and which of its checkpoints are best."""

import pytest

import systems
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.dataset.batching import Position
from bleuprint.training.train_state import TrainState

METRICS = [(10, 3.0, 1.0), (20, 2.0, 5.0), (30, 2.5, 9.0), (40, 2.0, 9.0), (50, 2.1, 2.0)]


def state(validations=5, update=50, epoch=0):
    made = TrainState.initial(parameters=7)
    made.update, made.position = update, Position(epoch, 3, 999)
    made.validations = [
        {"update": at, "loss": loss, "bleu": bleu} for at, loss, bleu in METRICS[:validations]
    ]
    return made


def test_the_best_are_the_lowest_losses_or_the_highest_bleu():
    assert state().ranking("loss") == [20, 40, 50, 30, 10]
    assert state().ranking("bleu") == [30, 40, 20, 50, 10]


@pytest.mark.parametrize(
    ("stops", "finished"),
    [
        ({"max_updates": 50}, True),
        ({"max_updates": 51}, False),
        ({"max_updates": None, "max_epochs": 2}, True),
        ({"max_updates": None, "max_epochs": 3}, False),
        ({"max_updates": 90, "max_epochs": 2}, True),
        # the best loss was at 20, and three validations have not bettered it since
        ({"max_updates": None, "patience": 3}, True),
        ({"max_updates": None, "patience": 4}, False),
        ({"max_updates": 90, "patience": 3}, True),
        # the best BLEU was at 30
        ({"max_updates": None, "patience": 3, "validation_metric": "bleu"}, False),
        ({"max_updates": None, "patience": 2, "validation_metric": "bleu"}, True),
    ],
)
def test_it_stops_at_whatever_comes_first(stops, finished):
    assert state(epoch=2).is_finished(systems.train(**stops)) is finished


def test_patience_waits_for_a_first_validation():
    assert not state(validations=0).is_finished(systems.train(max_updates=None, patience=1))


def test_a_training_that_patience_ended_says_why():
    stops = {"max_updates": 700, "patience": 3}
    ended = state().early_end(systems.train(**stops), 700)
    assert str(ended) == (
        "ended at update 50 of 700: loss has not improved in 3 validations "
        "(best 2.000 at update 20)"
    )
    assert ended.warning == ""  # warmup is of 20 updates; the loss was lower before
    assert state().early_end(systems.train(**stops, validation_metric="bleu"), 700) is None
    by_bleu = systems.train(max_updates=None, patience=2, validation_metric="bleu")
    assert str(state().early_end(by_bleu, None)) == (
        "ended at update 50: bleu has not improved in 2 validations (best 9.000 at update 30)"
    )


def test_a_training_that_may_have_ended_too_early_has_a_warning():
    made = state(validations=2, update=30)
    made.validations = [
        {"update": at, "loss": loss, "bleu": bleu}
        for at, loss, bleu in [(15, 6.5, 0.003), (20, 6.2, 0.0), (25, 6.3, 0.0), (30, 6.1, 0.003)]
    ]
    schedule = LrSchedule(noam=Noam(warmup_updates=4000))
    train = systems.train(
        max_updates=700, patience=3, validation_metric="bleu", lr_schedule=schedule
    )
    ended = made.early_end(train, 700)
    assert str(ended) == (
        "ended at update 30 of 700: bleu has not improved in 3 validations "
        "(best 0.003 at update 15)"
    )
    assert ended.warning == (
        "the loss was still falling (6.500 to 6.100) and warmup of 4,000 updates was not over: "
        "raise train.patience or train.validate_interval"
    )
    made.validations[-1]["loss"] = 6.3
    assert made.early_end(train, 700).warning.startswith("warmup of 4,000 updates was not over: ")
    constant = systems.train(patience=3, validation_metric="bleu", max_updates=700)
    assert made.early_end(constant, 700).warning == ""


def test_a_training_that_is_complete_did_not_end_early():
    assert state().early_end(systems.train(max_updates=50, patience=3), 50) is None
    assert (
        state(epoch=2).early_end(systems.train(max_updates=90, max_epochs=2, patience=3), 90)
        is None
    )
    assert state().early_end(systems.train(max_updates=90, patience=4), 90) is None
    assert state().early_end(systems.train(max_updates=90), 90) is None


def test_weights_are_validated_once():
    assert state().is_validated
    assert not state(update=51).is_validated
    assert not state(validations=0).is_validated
