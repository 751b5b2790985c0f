"""When a training stops, and which of its checkpoints are best."""

import pytest

import systems
from bleuprint.dataset.batching import Position
from bleuprint.training.train_state import TrainState

MEASURES = [(10, 3.0, 1.0), (20, 2.0, 5.0), (30, 2.5, 9.0), (40, 2.0, 9.0), (50, 2.1, 2.0)]


def state(validations=5, update=50, epoch=0):
    made = TrainState.initial(parameters=7)
    made.update, made.position = update, Position(epoch, 3, 999)
    made.validations = [
        {"update": at, "loss": loss, "bleu": bleu} for at, loss, bleu in MEASURES[:validations]
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
    assert state(epoch=2).finished(systems.train(**stops)) is finished


def test_patience_waits_for_a_first_validation():
    assert not state(validations=0).finished(systems.train(max_updates=None, patience=1))


def test_weights_are_validated_once():
    assert state().validated
    assert not state(update=51).validated
    assert not state(validations=0).validated
