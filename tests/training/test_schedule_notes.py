"""Settings that do not fit each other are named with both numbers; those that fit are not."""

import dataclasses

import pytest

import systems
from bleuprint.config.experiment import load_settings
from bleuprint.config.optimization import Constant, Cosine, InverseSqrt, LrSchedule, Noam
from bleuprint.config.paths import STATISTICS, corpus_folder
from bleuprint.config.system import Average
from bleuprint.dataset.statistics import CorpusStatistics, SideStatistics
from bleuprint.training.schedule_notes import UpdateLimit, schedule_notes, system_notes
from params import PARAMS
from root import ROOT


def noted(updates=1000, decode=None, average=None, **train):
    """Return the notes about a system that is validated and saved each 100 updates.

    Args:
        updates: The setting max_updates.
        decode: Settings of decoding that differ from the defaults.
        average: The setting average; without it the last checkpoint alone.
        train: Settings of training that differ from the defaults.
    """
    schedule = train.pop("lr_schedule", LrSchedule(constant=Constant(lr=0.001)))
    settings = {"validate_interval": 100, "save_interval": 100, "max_updates": updates, **train}
    system = systems.system(
        train=systems.train(lr_schedule=schedule, **settings),
        average=average or Average(last=1),
        decode=systems.decode(**(decode or {})),
    )
    return list(system_notes(system, UpdateLimit(updates, f"max_updates {updates:,}")))


def cosine(updates, min_lr=0.0, warmup=0):
    return LrSchedule(cosine=Cosine(0.001, warmup, updates, min_lr))


WARMUP = (
    "train.lr_schedule: warmup_updates {} is not below max_updates 700: the learning rate rises "
    "until the end. Lower warmup_updates"
)


@pytest.mark.parametrize(
    ("schedule", "warmup"),
    [
        (LrSchedule(noam=Noam()), "4,000 (the default)"),
        (LrSchedule(inverse_sqrt=InverseSqrt(lr=0.001)), "4,000 (the default)"),
        (LrSchedule(noam=Noam(warmup_updates=700)), "700"),
        (LrSchedule(noam=Noam(warmup_updates=699)), None),
        (LrSchedule(noam=Noam(warmup_updates=0)), None),
        (LrSchedule(constant=Constant(lr=1.0)), None),
    ],
)
def test_warmup_that_is_not_shorter_than_the_training_is_noted(schedule, warmup):
    expected = [] if warmup is None else [WARMUP.format(warmup)]
    assert noted(700, lr_schedule=schedule) == expected


@pytest.mark.parametrize(
    ("schedule", "note"),
    [
        (
            cosine(50),
            "is below max_updates 200: the last 150 updates have learning rate 0 and change "
            "nothing. Set both to one number",
        ),
        (
            cosine(50, min_lr=1e-5),
            "is below max_updates 200: the last 150 updates have learning rate min_lr, 1e-05. Set "
            "both to one number",
        ),
        # half of the way: half of the peak
        (
            cosine(400),
            "is above max_updates 200: training ends at learning rate 0.0005, before the cosine "
            "reaches 0. Set both to one number",
        ),
    ],
)
def test_a_cosine_schedule_shorter_or_longer_than_the_training_is_noted(schedule, note):
    length = schedule.cosine.max_updates
    expected = f"train.lr_schedule.cosine.max_updates {length} {note}"
    assert noted(200, lr_schedule=schedule) == [expected]


def test_a_cosine_schedule_as_long_as_the_training_is_not_noted():
    assert noted(200, lr_schedule=cosine(200, warmup=100)) == []


def test_a_validate_interval_longer_than_the_training_is_noted():
    assert noted(updates=90, validate_interval=91, save_interval=90) == [
        "train.validate_interval 91 is above max_updates 90: the one validation is at the end"
    ]


def test_a_save_interval_longer_than_the_training_is_noted():
    assert noted(updates=90, validate_interval=90, save_interval=1000) == [
        "train.save_interval 1,000 is above max_updates 90: the one checkpoint is at the end; a "
        "training that is stopped before begins anew"
    ]


def test_a_keep_interval_longer_than_the_training_is_noted():
    assert noted(updates=190, keep_last=1, keep_interval=200) == [
        "train.keep_interval 200 is above max_updates 190: it keeps no checkpoint"
    ]


def test_patience_that_may_end_the_training_before_its_warmup_is_noted():
    """The first validation is the best, so the earliest end is one interval after patience."""
    warmup = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.001, warmup_updates=401))

    # Validations are 100 updates apart: (1 + 3) x 100 = 400 and (1 + 4) x 100 = 500.
    assert noted(patience=3, lr_schedule=warmup) == [
        "train.patience 3 with validate_interval 100 may end the training at update 400, before "
        "warmup is over (warmup_updates 401). Raise patience or validate_interval"
    ]
    assert noted(patience=4, lr_schedule=warmup) == []


def test_patience_that_cannot_end_the_training_is_noted():
    # Validations are 100 updates apart: (1 + 9) x 100 = 1,000 and (1 + 10) x 100 = 1,100.
    assert noted(updates=1000, patience=9) == []
    assert noted(updates=1000, patience=10) == [
        "train.patience 10 with validate_interval 100 cannot end a training before update 1,100, "
        "after max_updates 1,000"
    ]


def test_the_earliest_end_by_patience_is_compared_with_warmup_without_max_updates():
    train = systems.train(
        max_updates=None,
        patience=1,
        validate_interval=10,
        lr_schedule=LrSchedule(noam=Noam(warmup_updates=21)),
    )
    (note,) = system_notes(systems.system(train=train), None)
    assert "may end the training at update 20, before warmup is over" in note


def test_a_moving_average_over_more_updates_than_the_training_has_is_noted():
    """It averages about the last 1 / (1 - ema) updates."""
    assert noted(1000, ema=0.9999, average=Average(ema=True)) == [
        "train.ema 0.9999 averages about the last 10,000 updates, more than max_updates 1,000: the "
        "first, random weights count almost as much as the last. Lower ema"
    ]
    assert noted(1000, ema=0.99, average=Average(ema=True)) == []


def test_a_long_moving_average_that_is_not_used_is_not_noted():
    assert noted(1000, ema=0.9999, average=Average(last=1)) == []


def test_more_checkpoints_to_average_than_the_epochs_save():
    """The updates of epochs are unknown when the settings are read."""
    train = systems.train(
        max_updates=None,
        max_epochs=3,
        validate_interval=100,
        save_interval=100,
        keep_last=5,
        lr_schedule=LrSchedule(constant=Constant(lr=0.001)),
    )
    limit = "the 201 updates of max_epochs 3 on own"

    def notes(last):
        system = systems.system(train=train, average=Average(last=last))
        return list(system_notes(system, UpdateLimit(201, limit)))

    assert notes(3) == []
    assert notes(4) == [
        "average.last 4: training keeps 3: lower train.save_interval (100), or lower "
        f"average.last (with {limit})"
    ]


def test_a_minimum_output_length_above_a_constant_maximum_is_noted():
    """The maximum length is max_len_a x source length + max_len_b."""
    assert noted(decode={"min_len": 11, "max_len_a": 0, "max_len_b": 10}) == [
        "decode.min_len 11 is above max_len_b 10, with max_len_a 0: no output can be that long"
    ]
    assert noted(decode={"min_len": 10, "max_len_a": 0, "max_len_b": 10}) == []
    assert noted(decode={"min_len": 11, "max_len_a": 1, "max_len_b": 10}) == []


@pytest.fixture
def project(tmp_path):
    """The settings of PARAMS with epochs, and a corpus of 100 pairs with 900 tokens."""

    def made(**changes):
        text = PARAMS.replace("max_updates: 10\n", "max_epochs: 3\n")
        for old, new in changes.values():
            text = text.replace(old, new)
        (tmp_path / "params.yaml").write_text(text)
        return load_settings(tmp_path / "params.yaml")

    side = SideStatistics(sentences=100, words=900, unsplit=0, tokens=900, unk=0, max_tokens=9)
    where = corpus_folder("own", "corpus_stats", tmp_path)
    where.mkdir(parents=True)
    sets = {"train": {"de": dataclasses.replace(side, tokens=500), "no": side}}
    CorpusStatistics(joint=True, sets=sets, vocabularies={}).write(where / STATISTICS)
    return tmp_path, made


def test_updates_of_epochs_are_counted_once_the_corpus_is_prepared(project):
    root, made = project
    warmup = ("warmup_updates: 4,", "warmup_updates: 30,")
    # 3 * (900 tokens + 100 EOS) / 100 tokens an update
    (note,) = schedule_notes(made(warmup=warmup), root)
    assert note == (
        "systems.base: train.lr_schedule: warmup_updates 30 is not below the 30 updates of "
        "max_epochs 3 on own: the learning rate rises until the end. Lower warmup_updates"
    )
    assert (
        list(schedule_notes(made(warmup=("warmup_updates: 4,", "warmup_updates: 29,")), root)) == []
    )
    (corpus_folder("own", "corpus_stats", root) / STATISTICS).unlink()
    assert list(schedule_notes(made(warmup=warmup), root)) == []


def test_systems_with_the_same_note_are_in_one_line(project):
    root, made = project
    more = ("published: []", "  second: {like: base}\npublished: []")
    warmup = ("warmup_updates: 4,", "warmup_updates: 30,")
    (note,) = schedule_notes(made(warmup=warmup, more=more), root)
    assert note.startswith("systems.base, second: train.lr_schedule: warmup_updates 30 is not")


def test_recipes_have_no_notes_but_those_that_are_true():
    """As published: The Annotated Transformer's copy task warms up beyond its end."""
    recipes = sorted((ROOT / "recipes").glob("*.yaml"))
    noted = {
        path.stem for path in recipes if list(schedule_notes(load_settings(path), ROOT / "none"))
    }
    assert noted == {"copy", "multi30k", "multi30k-french"}
