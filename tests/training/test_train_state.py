"""When a training stops, and which of its checkpoints are best."""

import pytest

import systems
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.dataset.batching import Position
from bleuprint.training.train_state import TrainState


def validation(update, loss, bleu):
    """Return the scores of a validation, as the state of a training contains them."""
    return {"update": update, "loss": loss, "bleu": bleu}


def state_of(update=50, validations=None, epoch=0):
    """Return the state of a training after an update.

    Args:
        update: The number of the update.
        validations: The validations so far. None gives five, of updates 10 to 50: the lowest loss
            is 2.0 at update 20, reached again at 40; the highest BLEU is 9.0 at update 30.
        epoch: The epoch of the update, counted from 0.
    """
    if validations is None:
        validations = [
            validation(10, loss=3.0, bleu=1.0),
            validation(20, loss=2.0, bleu=5.0),
            validation(30, loss=2.5, bleu=9.0),
            validation(40, loss=2.0, bleu=9.0),
            validation(50, loss=2.1, bleu=2.0),
        ]
    state = TrainState.initial(parameters=7)
    state.update = update
    state.position = Position(epoch=epoch, batch=3, tokens=999)
    state.validations = list(validations)
    return state


@pytest.mark.parametrize(
    ("metric", "updates_best_first"),
    [("loss", [20, 40, 50, 30, 10]), ("bleu", [30, 40, 20, 50, 10])],
    ids=["loss", "bleu"],
)
def test_the_best_checkpoints_have_the_lowest_loss_or_the_highest_bleu(metric, updates_best_first):
    """The earlier of two equally good ones comes first: 20 before 40, 30 before 40."""
    validations = [
        validation(10, loss=3.0, bleu=1.0),
        validation(20, loss=2.0, bleu=5.0),
        validation(30, loss=2.5, bleu=9.0),
        validation(40, loss=2.0, bleu=9.0),
        validation(50, loss=2.1, bleu=2.0),
    ]

    ranking = state_of(update=50, validations=validations).ranking(metric)

    assert ranking == updates_best_first


@pytest.mark.parametrize(
    ("limits", "is_finished"),
    [
        pytest.param({"max_updates": 50}, True, id="last update"),
        pytest.param({"max_updates": 51}, False, id="not the last update"),
        pytest.param({"max_updates": None, "max_epochs": 2}, True, id="last epoch"),
        pytest.param({"max_updates": None, "max_epochs": 3}, False, id="not the last epoch"),
        pytest.param({"max_updates": 90, "max_epochs": 2}, True, id="last epoch first"),
        pytest.param(
            {"max_updates": None, "patience": 3}, True, id="3 losses not lower than at update 20"
        ),
        pytest.param({"max_updates": None, "patience": 4}, False, id="only 3 losses not lower"),
        pytest.param({"max_updates": 90, "patience": 3}, True, id="patience first"),
        pytest.param(
            {"max_updates": None, "patience": 2, "validation_metric": "bleu"},
            True,
            id="2 scores not higher than at update 30",
        ),
        pytest.param(
            {"max_updates": None, "patience": 3, "validation_metric": "bleu"},
            False,
            id="only 2 scores not higher",
        ),
    ],
)
def test_a_training_is_finished_at_the_first_limit_that_it_reaches(limits, is_finished):
    """After update 50 and two epochs, with validations after each tenth update."""
    assert state_of(epoch=2).is_finished(systems.train(**limits)) is is_finished


def test_patience_does_not_end_a_training_before_its_first_validation():
    settings = systems.train(max_updates=None, patience=1)

    assert not state_of(validations=[]).is_finished(settings)


def test_a_training_ended_by_patience_with_the_loss_says_why():
    """`patience: 3` ends a training after 3 validations with a loss that is not lower."""
    validations = [
        validation(10, loss=3.0, bleu=1.0),
        validation(20, loss=2.0, bleu=5.0),  # the best loss
        validation(30, loss=2.5, bleu=9.0),
        validation(40, loss=2.0, bleu=9.0),
        validation(50, loss=2.1, bleu=2.0),
    ]
    settings = systems.train(max_updates=700, patience=3)

    early_end = state_of(update=50, validations=validations).early_end(settings, 700)

    assert str(early_end) == (
        "ended at update 50 of 700: loss has not improved in 3 validations "
        "(best 2.000 at update 20)"
    )


def test_a_training_ended_by_patience_with_bleu_says_why():
    """`patience: 2` ends a training after 2 validations with a BLEU that is not higher."""
    validations = [
        validation(10, loss=3.0, bleu=1.0),
        validation(20, loss=2.0, bleu=5.0),
        validation(30, loss=2.5, bleu=9.0),  # the best BLEU
        validation(40, loss=2.0, bleu=9.0),
        validation(50, loss=2.1, bleu=2.0),
    ]
    settings = systems.train(max_updates=None, patience=2, validation_metric="bleu")

    early_end = state_of(update=50, validations=validations).early_end(settings, None)

    assert str(early_end) == (
        "ended at update 50: bleu has not improved in 2 validations (best 9.000 at update 30)"
    )


def test_a_training_ended_after_warmup_with_a_loss_that_rose_has_no_warning():
    """A warning would say that it may have ended too early: in its warmup, or while it learned."""
    validations = [
        validation(20, loss=2.0, bleu=5.0),  # the best loss
        validation(30, loss=2.5, bleu=9.0),
        validation(40, loss=2.0, bleu=9.0),
        validation(50, loss=2.1, bleu=2.0),
    ]
    warmup = LrSchedule(noam=Noam(warmup_updates=20))
    settings = systems.train(max_updates=700, patience=3, lr_schedule=warmup)

    early_end = state_of(update=50, validations=validations).early_end(settings, 700)

    assert early_end.warning == ""


def settings_by_bleu(warmup_updates):
    """Return settings by which a training ends if BLEU has not improved for 3 validations."""
    return systems.train(
        max_updates=700,
        patience=3,
        validation_metric="bleu",
        lr_schedule=LrSchedule(noam=Noam(warmup_updates=warmup_updates)),
    )


def state_at_update_30(last_loss):
    """Return the state after four validations, in which BLEU was best at update 15, near 0.

    Args:
        last_loss: The loss at update 30. The lowest loss before is 6.2, at update 20.
    """
    validations = [
        validation(15, loss=6.5, bleu=0.003),
        validation(20, loss=6.2, bleu=0.0),
        validation(25, loss=6.3, bleu=0.0),
        validation(30, loss=last_loss, bleu=0.003),
    ]
    return state_of(update=30, validations=validations)


def test_an_end_at_bleu_scores_near_zero_names_the_best_validation():
    """Scores that one decimal would round to 0.0 can be told apart in the message."""
    state = state_at_update_30(last_loss=6.1)

    early_end = state.early_end(settings_by_bleu(warmup_updates=20), 700)

    assert str(early_end) == (
        "ended at update 30 of 700: bleu has not improved in 3 validations "
        "(best 0.003 at update 15)"
    )


def test_an_end_in_the_warmup_while_the_loss_falls_has_a_warning():
    """BLEU stays near 0, but the model still learns: the training has ended too early."""
    state = state_at_update_30(last_loss=6.1)  # the lowest loss so far

    early_end = state.early_end(settings_by_bleu(warmup_updates=4000), 700)

    assert early_end.warning == (
        "the loss was still falling (6.500 to 6.100) and warmup of 4,000 updates was not over. "
        "Raise train.patience or train.validate_interval"
    )


def test_an_end_in_the_warmup_after_the_loss_has_stopped_falling_has_a_warning():
    """At update 30 of 4,000 warmup updates, the loss is above that of an earlier validation."""
    state = state_at_update_30(last_loss=6.3)

    early_end = state.early_end(settings_by_bleu(warmup_updates=4000), 700)

    assert early_end.warning.startswith("warmup of 4,000 updates was not over. ")


def test_an_end_after_the_warmup_and_after_the_loss_has_stopped_falling_has_no_warning():
    """At update 30, the 20 warmup updates are over, and an earlier loss was lower."""
    state = state_at_update_30(last_loss=6.3)

    early_end = state.early_end(settings_by_bleu(warmup_updates=20), 700)

    assert early_end.warning == ""


@pytest.mark.parametrize(
    ("epoch", "settings", "max_updates"),
    [
        pytest.param(0, systems.train(max_updates=50, patience=3), 50, id="last update"),
        pytest.param(
            2, systems.train(max_updates=90, max_epochs=2, patience=3), 90, id="last epoch"
        ),
        pytest.param(0, systems.train(max_updates=90, patience=4), 90, id="patience not used up"),
        pytest.param(
            0,
            systems.train(max_updates=700, patience=3, validation_metric="bleu"),
            700,
            id="patience with bleu not used up",
        ),
        pytest.param(0, systems.train(max_updates=90), 90, id="no patience"),
    ],
)
def test_a_training_that_patience_did_not_end_has_no_early_end(epoch, settings, max_updates):
    assert state_of(epoch=epoch).early_end(settings, max_updates) is None


@pytest.mark.parametrize(
    ("update", "validations", "is_validated"),
    [
        pytest.param(
            50, [validation(50, loss=2.1, bleu=2.0)], True, id="validation of this update"
        ),
        pytest.param(
            51, [validation(50, loss=2.1, bleu=2.0)], False, id="validation of an earlier update"
        ),
        pytest.param(50, [], False, id="no validation"),
    ],
)
def test_weights_are_validated_if_the_last_validation_is_of_their_update(
    update, validations, is_validated
):
    assert state_of(update, validations).is_validated == is_validated
