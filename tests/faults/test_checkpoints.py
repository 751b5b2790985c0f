"""Checkpoints at a fault of each file operation."""

import pytest
import torch

import systems
from bleuprint.training import checkpoint
from fault_sweep import KINDS, NEEDS_SECCOMP, sweep


def save(place, update=20):
    state = {"fingerprint": "f", "loss": 0.1, "curve": [{"update": 1}] * 50}
    weights = {"a": torch.full((40, 30), float(update))}
    checkpoint.save(place, update, weights, {"step": torch.tensor(1.0)}, state)
    checkpoint.prune(place, systems.train(keep_last=1, save_interval=10), [], is_finished=False)


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
        pytest.param(10, KINDS, 1, marks=pytest.mark.slow),
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
