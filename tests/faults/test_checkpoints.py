"""A checkpoint is the old one or the new one after a fault at each file operation."""

import pytest
import torch

import systems
from bleuprint.training import checkpoint
from fault_sweep import FAULT_KINDS, NEEDS_SECCOMP, sweep_faults


def save_checkpoint(folder, update=20):
    """Save a checkpoint of one tensor, filled with the update, and remove older checkpoints."""
    state = {"fingerprint": "f", "loss": 0.1, "curve": [{"update": 1}] * 50}
    weights = {"a": torch.full((40, 30), float(update))}
    optimizer_state = {"step": torch.tensor(1.0)}
    checkpoint.save(folder, update, weights, optimizer_state, state)
    settings = systems.train(keep_last=1, save_interval=10)
    checkpoint.prune(folder, settings, [], is_finished=False)


def newest_update_and_weight(folder):
    """Read the newest whole checkpoint as a training does, but without moving damaged ones."""
    for path in reversed(checkpoint.paths(folder)):
        newest = checkpoint.load(path)
        return newest.update, newest.model["a"][0, 0].item()
    return None


@pytest.mark.parametrize(
    ("old_update", "fault_kinds", "step"),
    [
        pytest.param(10, ("SIGKILL", "ENOSPC"), 4, id="every fourth call"),
        pytest.param(10, FAULT_KINDS, 1, id="every call", marks=pytest.mark.slow),
        pytest.param(
            None, FAULT_KINDS, 1, id="every call of the first save", marks=pytest.mark.slow
        ),
    ],
)
@NEEDS_SECCOMP
def test_a_fault_leaves_the_old_checkpoint_or_the_new_one(tmp_path, old_update, fault_kinds, step):
    """A training loads its last checkpoint and saves a new one, at update 20.

    `sweep_faults` repeats this with a fault at the first system call on a file, then at the next
    one (or every fourth), and so on: a kill (SIGKILL) or a full disk (ENOSPC), for example. After
    each fault, the newest whole checkpoint must be of the old or of the new update.
    """

    def save_old_checkpoint(folder):
        if old_update is not None:
            save_checkpoint(folder, old_update)

    def resume_and_save(folder):
        checkpoint.load_latest(folder)
        save_checkpoint(folder)

    sweep_faults(
        tmp_path,
        operation=resume_and_save,
        prepare_folder=save_old_checkpoint,
        read_state=newest_update_and_weight,
        fault_kinds=fault_kinds,
        step=step,
    )
