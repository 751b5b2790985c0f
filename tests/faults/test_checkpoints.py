"""Checkpoints at a fault of each file operation, and damaged ones."""

import shutil

import pytest
import torch

from bleuprint.config.system import Keep
from bleuprint.runtime.files import read_json, sha256_of, write_json
from bleuprint.training import checkpoint
from fault_sweep import ALL_KINDS, KINDS, NEEDS_SECCOMP, sweep


def save(place, update=20):
    state = {"fingerprint": "f", "loss": 0.1, "curve": [{"update": 1}] * 50}
    weights = {"a": torch.full((40, 30), float(update))}
    checkpoint.save(place, update, weights, {"step": torch.tensor(1.0)}, state)
    checkpoint.prune(place, Keep(last=1, best=0, every=0), 10, [], finished=False)


def latest(place):
    """The newest whole checkpoint, read as a training reads it, but without touching it."""
    for path in reversed(checkpoint.paths(place)):
        found = checkpoint.load(path)
        return found.update, found.model["a"][0, 0].item()
    return None


@pytest.mark.parametrize(
    ("before", "kinds", "each"),
    [
        (10, ("SIGKILL", "ENOSPC"), 4),
        pytest.param(10, ALL_KINDS, 1, marks=pytest.mark.slow),
        pytest.param(None, KINDS, 1, marks=pytest.mark.slow),
    ],
)
@NEEDS_SECCOMP
def test_checkpoints(tmp_path, before, kinds, each):
    def prepare(place):
        if before:
            save(place, before)

    def resume_and_save(place):
        checkpoint.load_latest(place)
        save(place)

    sweep(tmp_path, resume_and_save, prepare, latest, kinds, each)


DAMAGES = {
    "header": lambda path: (path / checkpoint.MODEL).write_bytes(b"\xff" * 99),
    "optimizer's header": lambda path: (path / checkpoint.OPTIMIZER).write_bytes(b"{" * 99),
    "other weights": lambda path: checkpoint.save_tensors(
        {"b": torch.zeros(1)}, path / checkpoint.MODEL
    ),
    "state without update": lambda path: (path / checkpoint.STATE).write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_with_matching_sums_is_skipped(tmp_path, capsys, damage):
    def check(found):
        if "a" not in found.model:
            raise ValueError("other weights")

    save(tmp_path)
    path = checkpoint.checkpoint_path(tmp_path, 30)
    shutil.copytree(checkpoint.checkpoint_path(tmp_path, 20), path)
    state = read_json(path / checkpoint.STATE)
    write_json(path / checkpoint.STATE, {**state, "update": 30})
    DAMAGES[damage](path)
    sums = {name: sha256_of(path / name) for name in checkpoint.FILES}
    write_json(path / checkpoint.HASHES, sums)
    found = checkpoint.load_latest(tmp_path, check)
    assert found is not None and found.update == 20
    said = capsys.readouterr().err
    assert said.startswith(f"{path} is damaged (") and said.endswith("trying the previous one\n")
    assert said.count("\n") == 1
