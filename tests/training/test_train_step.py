"""Updates that fail: a loss that is not finite, a batch that does not fit into memory."""

import dataclasses
import math

import pytest
import torch

import systems
from bleuprint.config.paths import Run
from bleuprint.dataset.batching import Position
from bleuprint.runtime.errors import UserError
from bleuprint.training import checkpoint
from bleuprint.training import train_step as updates
from bleuprint.training.data_loader import local_updates
from bleuprint.training.job import Job
from bleuprint.training.loss import batch_loss
from bleuprint.training.observer import Observer
from bleuprint.training.train_step import OutOfMemory
from prepared import prepare
from trainings import ALONE, learner, merges, toy_pairs, train_here

SETTINGS = systems.train(tokens_per_update=300, max_tokens=60)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    held_out = toy_pairs(20, 2)
    pairs = [*toy_pairs(200, 1), ("Ŵ ba", "BA"), ("be Ŵ", "BE")]
    sets = {"train": pairs, "valid": held_out, "test.x": held_out}
    return prepare(tmp_path_factory.mktemp("learner"), sets, units=merges(40)).binary


class Warnings(Observer):
    def __init__(self):
        self.messages: list[str] = []

    def warned(self, message):
        self.messages.append(message)


def first_shares(corpus):
    return local_updates(corpus, systems.system(train=SETTINGS), 1, Position(), ALONE)


def test_a_loss_that_is_no_number_names_the_batch_that_did_it(corpus):
    made = learner(corpus, SETTINGS, tie_embeddings="none")
    (rare,) = corpus.segmentation("de").vocabulary.encode(["Ŵ"])
    with torch.no_grad():
        made.model.source_embedding.weight[rare] = torch.nan
    side = corpus.side("train", "de")

    def spoilt(share):
        batches = [batch.rows.tolist() for batch in share.update.batches]
        return [n for n, rows in enumerate(batches) if any(rare in side[row] for row in rows)]

    share = next(share for share in first_shares(corpus) if spoilt(share))
    pairs = ", ".join(str(row + 1) for row in share.update.batches[spoilt(share)[0]].rows[:5])
    with pytest.raises(UserError, match=f"loss of update 9 is nan.* training pairs {pairs}"):
        made.read_stats(made.update(9, share))


def test_a_gradient_that_is_infinite_ends_the_training(corpus, monkeypatch):
    """Though the loss of the update is a number: its weights would be none."""
    made = learner(corpus, SETTINGS)
    monkeypatch.setattr(made.optimizer, "grad_norm", lambda: torch.tensor(math.inf))
    share = next(first_shares(corpus))
    said = r"^the loss of update 1 is \d.*, its gradient's norm inf: lower the learning rate"
    with pytest.raises(UserError, match=said):
        made.read_stats(made.update(1, share))


def test_an_update_that_does_not_fit_leaves_no_trace(corpus, monkeypatch):
    made, share = learner(corpus, SETTINGS), next(first_shares(corpus))
    before = made.optimizer.weights.clone()
    fail_at(monkeypatch, {3})
    with pytest.raises(OutOfMemory):
        made.update(1, share)
    assert torch.equal(made.optimizer.weights, before)
    assert not made.optimizer.gradient.any()
    again = learner(corpus, SETTINGS)
    assert made.read_stats(made.update(1, share)) == again.read_stats(again.update(1, share))
    assert torch.equal(made.optimizer.weights, again.optimizer.weights)


def test_one_update_may_be_left_out_and_a_second_may_not(corpus, tmp_path, monkeypatch):
    system, warnings = systems.system(train=SETTINGS), Warnings()
    split = corpus.folder.with_name("split")
    job = Job(Run("s", "c", 1), system, corpus.folder, split, "code")
    fail_at(monkeypatch, {9})
    _, state, _ = train_here(job, tmp_path, warnings)
    assert (state.update, state.skipped) == (50, 1)
    (warning,) = warnings.messages
    assert "did not fit into the memory of cpu and is skipped" in warning

    other = dataclasses.replace(job, run=Run("s", "c", 2))
    fail_at(monkeypatch, {9, 30})
    with pytest.raises(UserError, match=r"the second such update; lower train\.max_tokens \(60\)"):
        train_here(other, tmp_path)
    saved = checkpoint.load_latest(tmp_path / "s.c.2")
    assert saved.state["skipped"] == 2
    assert saved.update % 10  # between two that are regular: saved for this


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), OutOfMemory),
        (RuntimeError("CUDA error: out of memory"), OutOfMemory),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), OutOfMemory),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), OutOfMemory),
        (RuntimeError("shapes cannot be multiplied"), RuntimeError),
    ],
)
def test_want_of_memory_is_known_by_what_is_said(corpus, monkeypatch, error, raised):
    def failing(*_):
        raise error

    monkeypatch.setattr(updates, "batch_loss", failing)
    made, share = learner(corpus, SETTINGS), next(first_shares(corpus))
    with pytest.raises(raised):
        made.update(1, share)


def fail_at(patch, calls):
    """Have the loss of some batches run out of memory, with the error of a GPU."""
    count = iter(range(1, 10**6))

    def failing(*arguments):
        if next(count) in calls:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return batch_loss(*arguments)

    patch.setattr(updates, "batch_loss", failing)


def test_torchs_own_error_of_a_size_that_no_machine_has_is_want_of_memory(corpus, monkeypatch):
    """Its wording is torch's, which another version may change."""

    def needs_much(*_):
        return torch.empty(1 << 62, dtype=torch.uint8)

    monkeypatch.setattr(updates, "batch_loss", needs_much)
    made, share = learner(corpus, SETTINGS), next(first_shares(corpus))
    with pytest.raises(OutOfMemory):
        made.update(1, share)
