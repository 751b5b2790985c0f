"""The room for checkpoints: numbers worked out by hand, and said before the first update."""

import shutil
from collections import namedtuple

import pytest

import systems
from bleuprint.runtime.errors import UserError
from bleuprint.training import trainer
from bleuprint.training.disk_room import (
    CheckpointSize,
    KeptCheckpoints,
    check_room,
    checkpoints_kept,
)
from bleuprint.training.observer import Observer
from trainings import job_in, make_project, train_here

DiskUsage = namedtuple("DiskUsage", "total used free")


def settings_that_keep(last, best=0, interval=0, **changes):
    """Return the settings of a training that saves every 10 updates and validates every 20.

    Args:
        last: The number of last checkpoints that the training keeps.
        best: The number of best checkpoints that it keeps.
        interval: It also keeps the checkpoint after each `interval` updates; 0 for none.
        changes: Other settings.
    """
    return systems.train(
        save_interval=10,
        validate_interval=20,
        keep_last=last,
        keep_best=best,
        keep_interval=interval,
        **changes,
    )


@pytest.mark.parametrize(
    ("settings", "updates", "at_least", "at_most"),
    [
        pytest.param(settings_that_keep(2), 100, 2, 2, id="only the last two"),
        pytest.param(settings_that_keep(20), 95, 10, 10, id="all: after 10, 20, ..., 90, 95"),
        pytest.param(
            settings_that_keep(5, best=3), 50, 5, 5, id="all five, so the best are among them"
        ),
        pytest.param(
            settings_that_keep(2, best=3), 100, 3, 5, id="the last two may be among the best three"
        ),
        pytest.param(
            settings_that_keep(1, best=1, interval=20),
            100,
            5,
            7,
            id="after 20, 40, 60, 80, 100, perhaps with the best and the last",
        ),
        pytest.param(
            settings_that_keep(2, best=3, interval=20),
            None,
            3,
            5,
            id="of an unknown length, without milestones",
        ),
    ],
)
def test_the_number_of_kept_checkpoints_is_foreseen(settings, updates, at_least, at_most):
    assert checkpoints_kept(settings, updates) == KeptCheckpoints(at_least, at_most)


def set_free_space(monkeypatch, megabytes):
    """Give every disk this much free space."""
    free_bytes = int(megabytes * 1e6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(10**12, 0, free_bytes))


def room_warnings(tmp_path, settings, weights_mb, optimizer_mb):
    """Check the room for the checkpoints of a training of 100 updates, and list the warnings.

    The folder of the checkpoints and that of the exported weights are on one disk.

    Args:
        tmp_path: A folder on that disk.
        settings: The settings of the training.
        weights_mb: The size of the weights in a checkpoint, in MB.
        optimizer_mb: The size of the optimizer's state in a checkpoint, in MB.

    Raises:
        UserError: The training does not fit in any case.
    """
    size = CheckpointSize(weights=weights_mb * 1_000_000, optimizer=optimizer_mb * 1_000_000)
    warnings = check_room(tmp_path / "work", tmp_path / "models" / "m", settings, 100, size)
    return list(warnings)


def test_two_kept_checkpoints_need_the_room_of_three(tmp_path, monkeypatch):
    """A checkpoint is written before an old one is removed."""
    checkpoint_mb = 4 + 8
    set_free_space(monkeypatch, megabytes=3 * checkpoint_mb)

    warnings = room_warnings(tmp_path, settings_that_keep(last=2), weights_mb=4, optimizer_mb=8)

    assert warnings == []


def test_less_room_than_two_kept_checkpoints_need_is_an_error(tmp_path, monkeypatch):
    """A third checkpoint is written before the oldest is removed: together they need 36 MB."""
    checkpoint_mb = 4 + 8
    set_free_space(monkeypatch, megabytes=3 * checkpoint_mb - 0.1)

    with pytest.raises(UserError) as raised:
        room_warnings(tmp_path, settings_that_keep(last=2), weights_mb=4, optimizer_mb=8)

    assert str(raised.value) == (
        f"the checkpoints of this training need 36 MB more, but {tmp_path} has 35.9 MB free. Make "
        "room there, or lower train.keep_last (2)"
    )


def test_weights_that_are_exported_at_the_end_need_room(tmp_path, monkeypatch):
    """The copies of four checkpoints' weights, 16 MB, need more room than a fifth checkpoint."""
    checkpoint_mb = 4 + 8
    exported_mb = 4 * 4
    set_free_space(monkeypatch, megabytes=4 * checkpoint_mb + exported_mb)

    warnings = room_warnings(tmp_path, settings_that_keep(last=4), weights_mb=4, optimizer_mb=8)

    assert warnings == []


def test_an_exported_moving_average_needs_room(tmp_path, monkeypatch):
    """Only the moving average of the weights, 4 MB, does not fit: 68 MB instead of 64 MB."""
    checkpoint_mb = 4 + 8
    exported_mb = 4 * 4
    set_free_space(monkeypatch, megabytes=4 * checkpoint_mb + exported_mb)
    settings = settings_that_keep(last=4, ema=0.9)

    with pytest.raises(UserError, match=r"need 68 MB more, but .* has 64 MB free"):
        room_warnings(tmp_path, settings, weights_mb=4, optimizer_mb=8)


def test_too_little_room_for_the_largest_possible_need_is_a_warning(tmp_path, monkeypatch):
    """If the best two checkpoints are not the last two, four are kept, and else fewer."""
    checkpoint_mb = 4 + 8
    largest_need_mb = 4 * checkpoint_mb + 4 * 4  # 64 MB, with the exported weights of all four
    set_free_space(monkeypatch, megabytes=largest_need_mb - 5)

    (warning,) = room_warnings(
        tmp_path, settings_that_keep(last=2, best=2), weights_mb=4, optimizer_mb=8
    )

    assert warning.startswith("the checkpoints of this training need up to 64 MB more, but ")


def test_room_for_the_largest_possible_need_causes_no_warning(tmp_path, monkeypatch):
    """If the best two checkpoints are not the last two, four are kept."""
    checkpoint_mb = 4 + 8
    largest_need_mb = 4 * checkpoint_mb + 4 * 4  # with the exported weights of all four
    set_free_space(monkeypatch, megabytes=largest_need_mb)

    warnings = room_warnings(
        tmp_path, settings_that_keep(last=2, best=2), weights_mb=4, optimizer_mb=8
    )

    assert warnings == []


def write_checkpoint(folder, megabytes):
    """Write a checkpoint of this size into the folder of a training."""
    checkpoint = folder / "work" / "checkpoint-0000010"
    checkpoint.mkdir(parents=True)
    with (checkpoint / "model.safetensors").open("wb") as file:
        file.truncate(megabytes * 1_000_000)


def test_existing_checkpoints_need_no_more_room(tmp_path, monkeypatch):
    """Of the three checkpoints that a training needs room for, one exists."""
    checkpoint_mb = 4 + 8
    write_checkpoint(tmp_path, checkpoint_mb)
    set_free_space(monkeypatch, megabytes=2 * checkpoint_mb)

    warnings = room_warnings(tmp_path, settings_that_keep(last=2), weights_mb=4, optimizer_mb=8)

    assert warnings == []


def test_the_error_names_the_room_that_is_needed_beyond_existing_checkpoints(tmp_path, monkeypatch):
    """Of the three checkpoints that a training needs room for, one exists: 24 MB are missing."""
    checkpoint_mb = 4 + 8
    write_checkpoint(tmp_path, checkpoint_mb)
    set_free_space(monkeypatch, megabytes=2 * checkpoint_mb - 1)

    with pytest.raises(UserError, match=r"need 24 MB more, but .*/work has 23 MB free"):
        room_warnings(tmp_path, settings_that_keep(last=2), weights_mb=4, optimizer_mb=8)


class NoUpdates(Observer):
    """Fails at the first update of a training."""

    def updated(self, *_):
        pytest.fail("the training computed an update")


@pytest.mark.usefixtures("one_thread")
def test_a_training_without_room_ends_before_its_first_update(tmp_path, monkeypatch):
    """The observer fails the test as soon as the training has computed an update."""
    job = job_in(make_project(tmp_path / "toy"), monkeypatch)
    set_free_space(monkeypatch, megabytes=0.001)

    with pytest.raises(UserError, match=r"need .* MB more, but .* has 0.001 MB free\. Make room"):
        train_here(job, tmp_path / "work", observer=NoUpdates())


@pytest.mark.usefixtures("one_thread")
def test_the_files_of_a_checkpoint_have_the_foreseen_sizes(tmp_path, monkeypatch):
    """A training computes the size before its first update, to check the room on the disk."""
    foreseen_sizes = []

    def record_size(_work, _export, _settings, _updates, checkpoint_size):
        foreseen_sizes.append(checkpoint_size)
        return iter(())  # no warnings

    monkeypatch.setattr(trainer, "check_room", record_size)
    job = job_in(make_project(tmp_path / "toy", max_updates=5), monkeypatch)

    folder = train_here(job, tmp_path / "work").folder

    (foreseen,) = foreseen_sizes
    (checkpoint,) = folder.glob("checkpoint-*")
    weights_bytes = (checkpoint / "model.safetensors").stat().st_size
    optimizer_bytes = (checkpoint / "optimizer.safetensors").stat().st_size
    # The files also contain the names of their tensors, some KB more than foreseen.
    assert 0 <= weights_bytes - foreseen.weights < 20_000
    assert 0 <= optimizer_bytes - foreseen.optimizer < 40_000
