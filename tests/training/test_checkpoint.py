"""Checkpoints as files: complete, verified, the newest intact one is found."""

import random
import shutil

import pytest
import torch
from safetensors import safe_open

import systems
from bleuprint.training import checkpoint

FILE_NAMES = [*checkpoint.FILES, checkpoint.HASHES]


def save(folder, update, weight=0.0):
    """Save a checkpoint of a model with six equal weights, and return its path."""
    return checkpoint.save(
        folder,
        update,
        {"a": torch.full((2, 3), weight)},
        {"step": torch.tensor(1.0)},
        {"fingerprint": "f1", "loss": 0.1},
    )


def make_folder(folder, update):
    """Make the empty folder of a checkpoint: pruning reads only the names of folders."""
    (folder / f"checkpoint-{update:07d}").mkdir()


def settings_that_keep(last, best, interval):
    """Return the settings of a training that saves and validates after each tenth update.

    Args:
        last: The number of last checkpoints that the training keeps.
        best: The number of best checkpoints that it keeps.
        interval: It also keeps the checkpoint after each `interval` updates; 0 for none.
    """
    return systems.train(
        validate_interval=10,
        save_interval=10,
        keep_last=last,
        keep_best=best,
        keep_interval=interval,
    )


def saved_updates(folder):
    """Return the updates of all checkpoints in a folder, in ascending order."""
    return [checkpoint.update_of(path) for path in sorted(folder.glob("checkpoint-*"))]


def test_the_checkpoint_of_the_largest_update_is_read(tmp_path):
    save(tmp_path, 9_999_999)
    save(tmp_path, 10_000_000)  # As text, its name comes before the other one.

    assert checkpoint.load_latest(tmp_path).update == 10_000_000


def test_a_checkpoint_is_read_as_it_was_saved(tmp_path):
    """Model and state of the training after update 20, to the last bit."""
    saved_weights = torch.tensor([[2.5, -0.1, 0.0], [1e-30, 7.0, 3.0]])
    saved_state = {"fingerprint": "f1", "loss": 0.1}
    checkpoint.save(
        tmp_path, 20, {"a": saved_weights}, {"step": torch.tensor(1.0)}, dict(saved_state)
    )

    loaded = checkpoint.load_latest(tmp_path)

    assert loaded.update == 20
    assert loaded.state["loss"] == saved_state["loss"]
    assert torch.equal(loaded.model["a"], saved_weights)


def test_a_folder_of_the_user_is_not_taken_for_a_checkpoint(tmp_path):
    save(tmp_path, 20)
    (tmp_path / "checkpoint-old").mkdir()

    assert checkpoint.load_latest(tmp_path).update == 20


def test_the_weights_contain_the_fingerprint_of_their_training(tmp_path):
    path = save(tmp_path, 3)

    with safe_open(path / checkpoint.MODEL, "np") as file:
        assert file.metadata() == {"fingerprint": "f1"}


@pytest.mark.parametrize("name", FILE_NAMES)
def test_equal_states_are_saved_as_equal_bytes(tmp_path, name):
    """A time in a file, for example, would make repeated trainings differ."""
    first_path = save(tmp_path / "a", 3, weight=1.5)
    second_path = save(tmp_path / "b", 3, weight=1.5)

    assert (first_path / name).read_bytes() == (second_path / name).read_bytes()


@pytest.mark.parametrize(
    ("saved", "settings", "best_first", "is_finished", "kept"),
    [
        pytest.param(
            [10, 20, 25, 30, 37],
            settings_that_keep(last=2, best=0, interval=0),
            [],
            False,
            [20, 30, 37],
            id="the last two multiples of 10, and the very last",
        ),
        pytest.param(
            [10, 20, 25, 30, 37],
            settings_that_keep(last=2, best=0, interval=0),
            [],
            True,
            [30, 37],
            id="the very last is one of the last two at the end",
        ),
        pytest.param(
            [10, 20],
            settings_that_keep(last=5, best=5, interval=0),
            [20],
            False,
            [10, 20],
            id="fewer exist than are to be kept",
        ),
        pytest.param(
            [10, 20, 30, 40, 50],
            settings_that_keep(last=1, best=2, interval=0),
            [20, 40, 10, 30, 50],
            False,
            [20, 40, 50],
            id="the best two and the last",
        ),
        pytest.param(
            [20, 30, 40, 50],
            settings_that_keep(last=1, best=2, interval=0),
            [10, 30, 20, 50, 40],
            False,
            [20, 30, 50],
            id="the best two of those that exist",
        ),
        pytest.param(
            [10, 20, 25],
            settings_that_keep(last=1, best=1, interval=0),
            [25, 10, 20],
            True,
            [25],
            id="the last is the best",
        ),
        pytest.param(
            [10, 20, 30, 40, 50, 60, 70],
            settings_that_keep(last=1, best=0, interval=30),
            [],
            False,
            [30, 60, 70],
            id="each thirtieth and the last",
        ),
        pytest.param(
            [10, 20, 30, 40, 50, 60, 65],
            settings_that_keep(last=1, best=1, interval=40),
            [20, 10],
            False,
            [20, 40, 60, 65],
            id="the best, each fortieth, the last multiple of 10 and the very last",
        ),
        pytest.param(
            [], settings_that_keep(last=1, best=1, interval=10), [], False, [], id="no checkpoints"
        ),
    ],
)
def test_pruning_removes_checkpoints_that_the_settings_do_not_keep(
    tmp_path, saved, settings, best_first, is_finished, kept
):
    """The settings keep the last checkpoints, the best, and those at multiples of `interval`.

    Checkpoints are saved after each tenth update, and once more where a training is interrupted or
    ends, such as after update 37. This very last one is kept until the training goes on.
    `best_first` lists the validated updates by their scores.
    """
    for update in saved:
        make_folder(tmp_path, update)

    checkpoint.prune(tmp_path, settings, best_first, is_finished)

    assert saved_updates(tmp_path) == kept


def test_pruning_keeps_damaged_checkpoints_which_have_another_name(tmp_path):
    """Only the user removes a damaged checkpoint, who may want to find out what damaged it."""
    damaged_path = tmp_path / "damaged-checkpoint-0000005"
    damaged_path.mkdir()
    settings = settings_that_keep(last=1, best=0, interval=0)

    checkpoint.prune(tmp_path, settings, [], is_finished=False)

    assert damaged_path.exists()


@pytest.mark.parametrize("seed", range(4))
def test_a_long_training_always_keeps_the_best_checkpoints_so_far(tmp_path, seed):
    """The training is interrupted now and then, or killed between saving and pruning.

    Validations follow after each twentieth update, checkpoints after each tenth. The settings keep
    the last two, the best three and each 200th.
    """
    rng = random.Random(seed)
    settings = settings_that_keep(last=2, best=3, interval=200)
    last_update = rng.randrange(900, 1000)
    losses: dict[int, float] = {}
    best_first: list[int] = []

    for update in range(1, last_update + 1):
        is_last = update == last_update
        if update % 20 == 0 or is_last:
            losses[update] = round(rng.random(), 1)  # With one decimal, some losses are equal.
            best_first = sorted(losses, key=lambda update: (losses[update], update))
        is_interrupted = rng.random() < 0.02
        if update % 10 == 0 or is_last or is_interrupted:
            make_folder(tmp_path, update)
            is_killed_before_pruning = rng.random() >= 0.8 and not is_last
            if not is_killed_before_pruning:
                checkpoint.prune(tmp_path, settings, best_first, is_finished=is_last)
                assert set(best_first[:3]) <= set(saved_updates(tmp_path))

    regular_updates = sorted({*range(10, last_update + 1, 10), last_update})
    milestones = {200, 400, 600, 800}
    kept_updates = milestones.union(regular_updates[-2:], best_first[:3])
    assert saved_updates(tmp_path) == sorted(kept_updates)


@pytest.fixture
def half_removed(tmp_path, monkeypatch):
    """Save two checkpoints, and kill the process while pruning removes the older one."""
    save(tmp_path, 10)
    save(tmp_path, 20)

    def remove_one_file(folder):
        (folder / checkpoint.MODEL).unlink()
        raise KeyboardInterrupt

    settings = settings_that_keep(last=1, best=0, interval=0)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", remove_one_file)
        checkpoint.prune(tmp_path, settings, [], is_finished=False)
    return tmp_path


def test_a_half_removed_checkpoint_is_not_taken_for_a_checkpoint(half_removed):
    assert saved_updates(half_removed) == [20]


def test_the_rest_of_a_half_removed_checkpoint_is_removed_by_the_next_training(half_removed):
    checkpoint.load_latest(half_removed)

    assert [path.name for path in half_removed.iterdir()] == ["checkpoint-0000020"]


def truncate(path, rng):
    """Remove one or more bytes from the end of a file."""
    content = path.read_bytes()
    # The JSON files end with a newline, without which they would be intact.
    path.write_bytes(content[: rng.randrange(len(content) - 1)])


def flip_bit(path, rng):
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    index = rng.randrange(len(content))
    content[index] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def remove(path, _):
    """Remove a file."""
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "repetitions"),
    [
        pytest.param(truncate, 30, id="truncated"),
        pytest.param(flip_bit, 30, id="changed bit"),
        pytest.param(remove, 1, id="missing"),
    ],
)
@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_damaged_checkpoint_is_reported_and_the_intact_one_before_it_is_read(
    tmp_path, name, damage, repetitions, capsys
):
    """Each repetition damages one file of checkpoint 2 in another way; checkpoint 1 is intact."""
    rng = random.Random(name)
    save(tmp_path, 1)

    for _ in range(repetitions):
        damaged_path = save(tmp_path, 2)
        damage(damaged_path / name, rng)

        loaded = checkpoint.load_latest(tmp_path)

        assert loaded.update == 1
        assert saved_updates(tmp_path) == [1]
        message = capsys.readouterr().err
        assert "checkpoint-0000002 is damaged" in message
        assert name in message


@pytest.fixture
def two_damaged(tmp_path):
    """Save two checkpoints, both without one of their files."""
    for update in (10, 20):
        path = save(tmp_path, update)
        (path / checkpoint.STATE).unlink()
    return tmp_path


def test_without_an_intact_checkpoint_none_is_read(two_damaged, capsys):
    assert checkpoint.load_latest(two_damaged) is None
    assert capsys.readouterr().err.count(". This checkpoint is skipped\n") == 2


def test_damaged_checkpoints_are_renamed_not_removed(two_damaged):
    checkpoint.load_latest(two_damaged)

    names = {path.name for path in two_damaged.iterdir()}
    assert names == {"damaged-checkpoint-0000010", "damaged-checkpoint-0000020"}


def test_a_damaged_checkpoint_older_than_an_intact_one_keeps_its_name(tmp_path):
    """A training continues from the newest one and does not read older ones.

    The older one may be among the best: then the export of the checkpoints reports the damage.
    """
    damaged_path = save(tmp_path, 1)
    save(tmp_path, 2)
    (damaged_path / checkpoint.MODEL).unlink()

    loaded = checkpoint.load_latest(tmp_path)

    assert loaded.update == 2
    assert saved_updates(tmp_path) == [1, 2]
