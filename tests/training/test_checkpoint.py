"""Checkpoints as files: complete, verified, the newest intact one is found."""

import random
import shutil

import pytest
import torch
from safetensors import safe_open

import systems
from bleuprint.training import checkpoint

FILES = [*checkpoint.FILES, checkpoint.HASHES]


def save(folder, update, value=0.0, **state):
    tensors = {"a": torch.full((2, 3), value)}
    state = {"fingerprint": "f1", "loss": 0.1, **state}
    return checkpoint.save(folder, update, tensors, {"step": torch.tensor(1.0)}, state)


def kept(last, best, interval):
    """Settings of a training that saves a checkpoint every 10 updates and keeps these."""
    return systems.train(
        validate_interval=10,
        save_interval=10,
        keep_last=last,
        keep_best=best,
        keep_interval=interval,
    )


def updates(folder):
    return [checkpoint.update_of(path) for path in sorted(folder.glob("checkpoint-*"))]


def test_the_newest_is_read_as_it_was_saved(tmp_path):
    save(tmp_path, 9_999_999, 1.5)
    save(tmp_path, 10_000_000, 2.5)
    (tmp_path / "checkpoint-old").mkdir()  # somebody's own
    found = checkpoint.load_latest(tmp_path)
    assert (found.update, found.state["loss"]) == (10_000_000, 0.1)
    assert found.model["a"].tolist() == [[2.5] * 3] * 2


def test_weights_name_their_training_and_repeat_to_the_byte(tmp_path):
    first, again = (save(tmp_path / name, 3, 1.5) for name in ("a", "b"))
    with safe_open(first / checkpoint.MODEL, "np") as file:
        assert file.metadata() == {"fingerprint": "f1"}
    for name in FILES:
        assert (first / name).read_bytes() == (again / name).read_bytes()


@pytest.mark.parametrize(
    ("there", "settings", "ranking", "finished", "stay"),
    [
        # the newest two regular ones, and the very last
        ([10, 20, 25, 30, 37], kept(2, 0, 0), [], False, [20, 30, 37]),
        # the last checkpoint of a finished training counts as regular
        ([10, 20, 25, 30, 37], kept(2, 0, 0), [], True, [30, 37]),
        # fewer exist than are to be kept
        ([10, 20], kept(5, 5, 0), [20], False, [10, 20]),
        # the best, of those that are there
        ([10, 20, 30, 40, 50], kept(1, 2, 0), [20, 40, 10, 30, 50], False, [20, 40, 50]),
        ([20, 30, 40, 50], kept(1, 2, 0), [10, 30, 20, 50, 40], False, [20, 30, 50]),
        # a best one that training ends with
        ([10, 20, 25], kept(1, 1, 0), [25, 10, 20], True, [25]),
        # each thirtieth
        ([10, 20, 30, 40, 50, 60, 70], kept(1, 0, 30), [], False, [30, 60, 70]),
        # all at once
        ([10, 20, 30, 40, 50, 60, 65], kept(1, 1, 40), [20, 10], False, [20, 40, 60, 65]),
        ([], kept(1, 1, 10), [], False, []),
    ],
)
def test_what_need_not_stay_goes(tmp_path, there, settings, ranking, finished, stay):
    for update in there:
        (tmp_path / f"checkpoint-{update:07d}").mkdir()
    (tmp_path / "damaged-checkpoint-0000005").mkdir()
    checkpoint.prune(tmp_path, settings, ranking, finished)
    assert updates(tmp_path) == stay
    assert (tmp_path / "damaged-checkpoint-0000005").exists()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_validations_are_there_at_the_end(tmp_path, seed):
    """A long training, interrupted now and then, and killed between saving and pruning."""
    rng = random.Random(seed)
    end = rng.randrange(900, 1000)
    losses: dict[int, float] = {}
    settings = kept(2, 3, 200)
    ranked: list[int] = []
    for update in range(1, end + 1):
        if update % 20 == 0 or update == end:
            losses[update] = round(rng.random(), 1)  # so that some are the same
            ranked = sorted(losses, key=lambda one: (losses[one], one))
        if update % 10 == 0 or update == end or rng.random() < 0.02:
            (tmp_path / f"checkpoint-{update:07d}").mkdir()
            if rng.random() < 0.8 or update == end:
                checkpoint.prune(tmp_path, settings, ranked, is_finished=update == end)
                assert set(ranked[:3]) <= set(updates(tmp_path))
    regular = sorted({*range(10, end + 1, 10), end})
    assert updates(tmp_path) == sorted({*regular[-2:], *ranked[:3], 200, 400, 600, 800, end})


def test_of_one_half_removed_nothing_is_left(tmp_path, monkeypatch):
    for update in (10, 20):
        save(tmp_path, update)

    def killed(folder):
        (folder / checkpoint.MODEL).unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        checkpoint.prune(tmp_path, kept(1, 0, 0), [], is_finished=False)
    assert updates(tmp_path) == [20]
    checkpoint.load_latest(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-0000020"]


def cut_short(content, rng):
    # what comes after the last bracket of JSON is no content
    return content[: rng.randrange(len(content) - 1)]


def flipped(content, rng):
    at, changed = rng.randrange(len(content)), bytearray(content)
    changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("damage", [cut_short, flipped, None])
@pytest.mark.parametrize("name", FILES)
def test_damaged_ones_go_and_whole_ones_stay(tmp_path, name, damage, capsys):
    rng = random.Random(name)
    save(tmp_path, 1)
    for _ in range(30 if damage else 1):
        path = save(tmp_path, 2) / name
        if damage:
            path.write_bytes(damage(path.read_bytes(), rng))
        else:
            path.unlink()
        checkpoint.load_latest(tmp_path)
        assert updates(tmp_path) == [1]
        said = capsys.readouterr().err
        assert "checkpoint-0000002 is damaged" in said
        assert name in said
    assert checkpoint.load_latest(tmp_path).update == 1


def test_without_an_intact_checkpoint_training_starts_again(tmp_path, capsys):
    for update in (10, 20):
        save(tmp_path, update)
        (tmp_path / f"checkpoint-{update:07d}" / checkpoint.STATE).unlink()
    assert checkpoint.load_latest(tmp_path) is None
    assert capsys.readouterr().err.count("; it is not used\n") == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"damaged-checkpoint-0000010", "damaged-checkpoint-0000020"}


def test_a_damaged_one_that_is_older_than_an_intact_one_stays(tmp_path):
    """One of the best may be among them: its damage is named when it is exported."""
    for update in (1, 2):
        save(tmp_path, update)
    (tmp_path / "checkpoint-0000001" / checkpoint.MODEL).unlink()
    assert checkpoint.load_latest(tmp_path).update == 2
    assert updates(tmp_path) == [1, 2]
