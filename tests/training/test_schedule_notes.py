"""Settings that do not fit each other are named with both numbers; those that fit are not."""

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


def notes_on(max_updates=1000, decode=None, average=None, **train_changes):
    """Return the notes about a system that is validated and saved each 100 updates.

    Args:
        max_updates: The number of updates.
        decode: Settings of decoding that differ from the usual ones.
        average: The setting average; without it the last checkpoint alone.
        train_changes: Settings of training that differ from the usual ones.
    """
    train_settings = {
        "lr_schedule": LrSchedule(constant=Constant(lr=0.001)),
        "validate_interval": 100,
        "save_interval": 100,
        "max_updates": max_updates,
    }
    train_settings.update(train_changes)
    system = systems.system(
        train=systems.train(**train_settings),
        average=average or Average(last=1),
        decode=systems.decode(**(decode or {})),
    )
    limit = UpdateLimit(max_updates, f"max_updates {max_updates:,}")
    return list(system_notes(system, limit))


def cosine(max_updates, min_lr=0.0, warmup_updates=0):
    """Return a schedule whose learning rate falls from 0.001 along half a cosine."""
    return LrSchedule(cosine=Cosine(0.001, warmup_updates, max_updates, min_lr))


@pytest.mark.parametrize(
    ("schedule", "warmup_updates"),
    [
        pytest.param(LrSchedule(noam=Noam()), "4,000 (the default)", id="noam, default"),
        pytest.param(
            LrSchedule(inverse_sqrt=InverseSqrt(lr=0.001)),
            "4,000 (the default)",
            id="inverse_sqrt, default",
        ),
        pytest.param(LrSchedule(noam=Noam(warmup_updates=700)), "700", id="noam, 700"),
    ],
)
def test_a_warmup_as_long_as_the_training_or_longer_is_noted(schedule, warmup_updates):
    """The learning rate rises during warmup and then falls; here it would only rise."""
    notes = notes_on(max_updates=700, lr_schedule=schedule)

    assert notes == [
        f"train.lr_schedule: warmup_updates {warmup_updates} must be below max_updates 700, or "
        "the learning rate rises until the end. Lower warmup_updates"
    ]


@pytest.mark.parametrize(
    "schedule",
    [
        pytest.param(LrSchedule(noam=Noam(warmup_updates=699)), id="warmup of 699"),
        pytest.param(LrSchedule(noam=Noam(warmup_updates=0)), id="warmup of 0"),
        pytest.param(LrSchedule(constant=Constant(lr=1.0)), id="no warmup"),
    ],
)
def test_a_warmup_shorter_than_the_training_is_not_noted(schedule):
    assert notes_on(max_updates=700, lr_schedule=schedule) == []


@pytest.mark.parametrize(
    ("min_lr", "remaining_updates"),
    [
        pytest.param(
            0.0,
            "the last 150 updates have learning rate 0 and change nothing",
            id="down to 0",
        ),
        pytest.param(
            1e-5, "the last 150 updates have learning rate min_lr, 1e-05", id="down to min_lr"
        ),
    ],
)
def test_a_cosine_schedule_shorter_than_the_training_is_noted(min_lr, remaining_updates):
    """The learning rate falls to `min_lr` in 50 updates, and stays there for 150 more."""
    notes = notes_on(max_updates=200, lr_schedule=cosine(max_updates=50, min_lr=min_lr))

    assert notes == [
        "train.lr_schedule.cosine.max_updates 50 is below max_updates 200, so "
        f"{remaining_updates}. Set both to the same number"
    ]


def test_a_cosine_schedule_longer_than_the_training_is_noted():
    """The rate falls from its peak, 0.001, for 400 updates; training ends halfway, at 0.0005."""
    notes = notes_on(max_updates=200, lr_schedule=cosine(max_updates=400))

    assert notes == [
        "train.lr_schedule.cosine.max_updates 400 is above max_updates 200, so training ends "
        "at learning rate 0.0005, before the cosine reaches 0. Set both to the same number"
    ]


def test_a_cosine_schedule_as_long_as_the_training_is_not_noted():
    assert notes_on(max_updates=200, lr_schedule=cosine(200, warmup_updates=100)) == []


def test_a_validate_interval_longer_than_the_training_is_noted():
    assert notes_on(max_updates=90, validate_interval=91, save_interval=90) == [
        "train.validate_interval 91 is above max_updates 90, so the training validates only at its "
        "end. Lower validate_interval"
    ]


def test_a_save_interval_longer_than_the_training_is_noted():
    assert notes_on(max_updates=90, validate_interval=90, save_interval=1000) == [
        "train.save_interval 1,000 is above max_updates 90, so the training saves only at its end. "
        "If it is stopped earlier, it has to start again. Lower save_interval"
    ]


def test_a_keep_interval_longer_than_the_training_is_noted():
    assert notes_on(max_updates=190, keep_last=1, keep_interval=200) == [
        "train.keep_interval 200 is above max_updates 190, so it has no effect. Lower keep_interval"
    ]


def test_patience_that_may_end_the_training_in_its_warmup_is_noted():
    """A rising learning rate can worsen the loss for a while; that should not end the training.

    Validations follow each other after 100 updates. If the first stays the best, the training
    ends three validations later.
    """
    earliest_end = 100 + 3 * 100
    warmup = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.001, warmup_updates=401))

    notes = notes_on(patience=3, validate_interval=100, lr_schedule=warmup)

    assert notes == [
        "train.patience 3 with validate_interval 100 may end the training at update "
        f"{earliest_end}, before the warmup ends (warmup_updates 401). Raise patience or "
        "validate_interval"
    ]


def test_patience_that_can_end_the_training_only_after_its_warmup_is_not_noted():
    """The earliest end is at update 100 + 4 * 100 = 500, after the 401 updates of warmup."""
    warmup = LrSchedule(inverse_sqrt=InverseSqrt(lr=0.001, warmup_updates=401))

    notes = notes_on(patience=4, validate_interval=100, lr_schedule=warmup)

    assert notes == []


def test_patience_that_cannot_end_the_training_is_noted():
    """If the first of the validations stays the best, training ends at 100 + 10 * 100 = 1,100."""
    notes = notes_on(max_updates=1000, patience=10, validate_interval=100)

    assert notes == [
        "train.patience 10 with validate_interval 100 has no effect: it can end a training at "
        "update 1,100 or later, but the limit is max_updates 1,000. Lower patience or "
        "validate_interval"
    ]


def test_patience_that_can_end_the_training_at_its_last_update_is_not_noted():
    # The earliest end by patience is at update 100 + 9 * 100 = 1,000.
    assert notes_on(max_updates=1000, patience=9) == []


def test_patience_shorter_than_warmup_is_noted_for_a_training_without_max_updates():
    """If the first validation stays the best, one more ends the training, at update 20 of 21."""
    settings = systems.train(
        max_updates=None,
        patience=1,
        validate_interval=10,
        lr_schedule=LrSchedule(noam=Noam(warmup_updates=21)),
    )

    (note,) = system_notes(systems.system(train=settings), None)

    earliest_end = 10 + 1 * 10
    assert f"may end the training at update {earliest_end}, before the warmup ends" in note


def test_a_moving_average_over_more_updates_than_the_training_has_is_noted():
    """The average covers about the last 1 / (1 - ema) updates: here 1 / 0.0001 = 10,000."""
    notes = notes_on(max_updates=1000, ema=0.9999, average=Average(ema=True))

    assert notes == [
        "train.ema 0.9999 averages about the last 10,000 updates, more than max_updates 1,000, so "
        "the first, random weights count almost as much as the last. Lower ema"
    ]


def test_a_moving_average_over_fewer_updates_than_the_training_has_is_not_noted():
    # About the last 100 updates.
    assert notes_on(max_updates=1000, ema=0.99, average=Average(ema=True)) == []


def test_a_long_moving_average_that_is_not_used_is_not_noted():
    assert notes_on(max_updates=1000, ema=0.9999, average=Average(last=1)) == []


def notes_on_average_of_epochs(last):
    """Return the notes on a training of 3 epochs that averages its last checkpoints.

    The 3 epochs are 201 updates, which is known once the corpus is prepared. Checkpoints are saved
    after updates 100, 200 and 201.
    """
    train = systems.train(
        max_updates=None,
        max_epochs=3,
        validate_interval=100,
        save_interval=100,
        keep_last=5,
        lr_schedule=LrSchedule(constant=Constant(lr=0.001)),
    )
    limit = UpdateLimit(201, "the 201 updates of max_epochs 3 on own")
    return list(system_notes(systems.system(train=train, average=Average(last=last)), limit))


def test_an_average_of_more_checkpoints_than_the_epochs_save_is_noted():
    assert notes_on_average_of_epochs(last=4) == [
        "average.last is 4, but training keeps only 3. Lower train.save_interval (100), or lower "
        "average.last (with the 201 updates of max_epochs 3 on own)"
    ]


def test_an_average_of_all_checkpoints_that_the_epochs_save_is_not_noted():
    assert notes_on_average_of_epochs(last=3) == []


def test_a_minimum_output_length_above_a_constant_maximum_is_noted():
    """The maximum length is max_len_a x source length + max_len_b."""
    assert notes_on(decode={"min_len": 11, "max_len_a": 0, "max_len_b": 10}) == [
        "decode.min_len 11 is above max_len_b 10, and max_len_a is 0, so no output can be that "
        "long. Lower min_len or raise max_len_b"
    ]


@pytest.mark.parametrize(
    "decode",
    [
        pytest.param({"min_len": 10, "max_len_a": 0, "max_len_b": 10}, id="minimum is maximum"),
        pytest.param(
            {"min_len": 11, "max_len_a": 1, "max_len_b": 10}, id="maximum grows with the source"
        ),
    ],
)
def test_a_minimum_output_length_that_outputs_can_have_is_not_noted(decode):
    assert notes_on(decode=decode) == []


def write_project(root, warmup_updates, other_system=""):
    """Write the settings of a system that is trained for 3 epochs, in updates of 100 tokens.

    Args:
        root: The folder of the project.
        warmup_updates: The setting of this name.
        other_system: A line of params.yaml with one more system.

    Returns:
        The settings.
    """
    content = PARAMS.replace("max_updates: 10\n", "max_epochs: 3\n")
    content = content.replace("warmup_updates: 4,", f"warmup_updates: {warmup_updates},")
    content = content.replace("published: []", f"{other_system}published: []")
    path = root / "params.yaml"
    path.write_text(content)
    return load_settings(path)


def write_statistics(root, pairs, target_tokens):
    """Write the statistics of a prepared corpus.

    Args:
        root: The folder of the project.
        pairs: The number of training pairs.
        target_tokens: The number of target tokens of all training pairs, without EOS.
    """
    source = SideStatistics(sentences=pairs, words=900, unsplit=0, tokens=500, unk=0, max_tokens=9)
    target = SideStatistics(
        sentences=pairs, words=900, unsplit=0, tokens=target_tokens, unk=0, max_tokens=9
    )
    folder = corpus_folder("own", "corpus_stats", root)
    folder.mkdir(parents=True)
    sets = {"train": {"de": source, "no": target}}
    CorpusStatistics(joint=True, sets=sets, vocabularies={}).write(folder / STATISTICS)


def test_a_warmup_as_long_as_the_epochs_is_noted_once_the_corpus_is_prepared(tmp_path):
    """The settings say `max_epochs: 3` and 100 tokens per update; the corpus size decides the rest.

    The prepared corpus has 100 pairs with 900 target tokens. Each sentence also has an EOS token.
    """
    write_statistics(tmp_path, pairs=100, target_tokens=900)
    tokens_and_eos = 900 + 100
    updates = 3 * tokens_and_eos // 100
    settings = write_project(tmp_path, warmup_updates=30)

    (note,) = schedule_notes(settings, tmp_path)

    assert note == (
        f"systems.base: train.lr_schedule: warmup_updates 30 must be below the {updates} updates "
        "of max_epochs 3 on own, or the learning rate rises until the end. Lower warmup_updates"
    )


def test_a_warmup_shorter_than_the_epochs_is_not_noted(tmp_path):
    """3 epochs of 1,000 tokens are 30 updates of 100 tokens, one more than the warmup."""
    write_statistics(tmp_path, pairs=100, target_tokens=900)
    settings = write_project(tmp_path, warmup_updates=29)

    assert list(schedule_notes(settings, tmp_path)) == []


def test_a_warmup_as_long_as_the_epochs_is_not_noted_before_the_corpus_is_prepared(tmp_path):
    settings = write_project(tmp_path, warmup_updates=30)

    assert list(schedule_notes(settings, tmp_path)) == []


def test_systems_with_the_same_note_are_named_in_one_line(tmp_path):
    """System `second` has all settings of `base`, whose warmup lasts as long as its training."""
    write_statistics(tmp_path, pairs=100, target_tokens=900)
    settings = write_project(tmp_path, warmup_updates=30, other_system="  second: {like: base}\n")

    (note,) = schedule_notes(settings, tmp_path)

    assert note.startswith("systems.base, second: train.lr_schedule: warmup_updates 30 must")


def test_only_recipes_with_published_settings_have_notes(tmp_path):
    """Three recipes repeat published settings, such as a warmup longer than the training.

    All other recipes are examples for users, so their settings must fit each other.
    """
    recipes_with_notes = set()

    for path in (ROOT / "recipes").glob("*.yaml"):
        notes = list(schedule_notes(load_settings(path), tmp_path))
        if notes:
            recipes_with_notes.add(path.stem)

    assert recipes_with_notes == {"copy", "multi30k", "multi30k-french"}
