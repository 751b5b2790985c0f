"""The room for checkpoints: numbers worked out by hand, and said before the first update."""

import shutil
from collections import namedtuple

import pytest

import systems
from bleuprint.runtime.errors import UserError
from bleuprint.training.disk_room import (
    CheckpointSize,
    KeptCheckpoints,
    check_room,
    checkpoints_kept,
)
from bleuprint.training.observer import Observer
from trainings import job_in, project, train_here

Usage = namedtuple("Usage", "total used free")
# 4 MB of weights and 8 MB of Adam's two moments
ONE = CheckpointSize(weights=4_000_000, optimizer=8_000_000)


def settings(last, best=0, every=0, **others):
    return systems.train(
        save_interval=10,
        validate_interval=20,
        keep_last=last,
        keep_best=best,
        keep_interval=every,
        **others,
    )


@pytest.mark.parametrize(
    ("keep", "updates", "least", "most"),
    [
        ((2, 0, 0), 100, 2, 2),
        ((20, 0, 0), 95, 10, 10),  # after 10, 20, ... 90 and 95 updates
        ((5, 3, 0), 50, 5, 5),  # no more are saved; two validations
        ((2, 3, 0), 100, 3, 5),
        ((1, 1, 20), 100, 5, 7),  # after 20, 40, 60, 80 and 100
        ((2, 3, 20), None, 3, 5),  # until patience ends it: milestones cannot be foreseen
    ],
)
def test_how_many_are_kept(keep, updates, least, most):
    assert checkpoints_kept(settings(*keep), updates) == KeptCheckpoints(least, most)


def disk(monkeypatch, free):
    """Let each disk have this many bytes free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, free))


def warnings(tmp_path, given, updates=100):
    return [*check_room(tmp_path / "work", tmp_path / "models/m", given, updates, ONE)]


def test_two_kept_ones_and_one_that_is_written_need_three(tmp_path, monkeypatch):
    disk(monkeypatch, 36_000_000)
    assert warnings(tmp_path, settings(last=2)) == []
    disk(monkeypatch, 35_900_000)
    with pytest.raises(UserError) as raised:
        warnings(tmp_path, settings(last=2))
    assert str(raised.value) == (
        f"the checkpoints of this training need 36 MB more, but {tmp_path} has 35.9 MB free: make "
        "room there, or lower train.keep_last (2) or keep_best (0)"
    )


def test_the_copies_at_the_end_count(tmp_path, monkeypatch):
    """Four kept ones, 48 MB, with 16 MB of weights copied: more than a fifth one of 12 MB."""
    disk(monkeypatch, 64_000_000)
    assert warnings(tmp_path, settings(last=4)) == []
    with pytest.raises(UserError, match=r"need 68 MB more, but .* has 64 MB free"):
        warnings(tmp_path, settings(last=4, ema=0.9))  # and a moving average of 4 MB


def test_what_may_be_needed_is_a_warning(tmp_path, monkeypatch):
    """The best ones are among the last two, or not: 36 to 60 MB."""
    disk(monkeypatch, 59_000_000)
    (line,) = warnings(tmp_path, settings(last=2, best=2))
    assert line.startswith("the checkpoints of this training need up to 64 MB more, but ")
    disk(monkeypatch, 64_000_000)
    assert warnings(tmp_path, settings(last=2, best=2)) == []


def test_what_is_there_already_needs_no_more_room(tmp_path, monkeypatch):
    checkpoint = tmp_path / "work" / "checkpoint-0000010"
    checkpoint.mkdir(parents=True)
    with (checkpoint / "model.safetensors").open("wb") as file:
        file.truncate(12_000_000)
    disk(monkeypatch, 24_000_000)
    assert warnings(tmp_path, settings(last=2)) == []
    disk(monkeypatch, 23_000_000)
    with pytest.raises(UserError, match=r"need 24 MB more, but .*/work has 23 MB free"):
        warnings(tmp_path, settings(last=2))


@pytest.mark.usefixtures("one_thread")
def test_a_training_without_room_ends_before_its_first_update(tmp_path, monkeypatch):
    class Updates(Observer):
        def updated(self, *_):
            pytest.fail("an update")

    job = job_in(project(tmp_path / "toy"), monkeypatch)
    disk(monkeypatch, 1_000)
    with pytest.raises(UserError, match=r"need .* MB more, but .* has 0.001 MB free: make room"):
        train_here(job, tmp_path / "work", Updates())


@pytest.mark.usefixtures("one_thread")
def test_a_checkpoint_is_as_large_as_was_foreseen(tmp_path, monkeypatch):
    """Of a training that keeps all: the files, and the copies of their weights."""
    from bleuprint.training import trainer

    needed = []

    def recorded(*arguments):
        needed.append(arguments[-1])
        return iter(())

    monkeypatch.setattr(trainer, "check_room", recorded)
    job = job_in(project(tmp_path / "toy", max_updates=5), monkeypatch)
    folder, *_ = train_here(job, tmp_path / "work")
    (one,) = needed
    (checkpoint,) = folder.glob("checkpoint-*")
    sizes = {path.name: path.stat().st_size for path in checkpoint.glob("*.safetensors")}
    # their headers have the names of the tensors
    assert 0 <= sizes["model.safetensors"] - one.weights < 20_000
    assert 0 <= sizes["optimizer.safetensors"] - one.optimizer < 40_000
