"""Updates that fail: a loss that is not finite, a batch that does not fit into memory."""

import dataclasses
import math

import pytest
import torch

import systems
from bleuprint.config.paths import Run
from bleuprint.dataset.batching import Position
from bleuprint.runtime.errors import UserError
from bleuprint.training import checkpoint, train_step
from bleuprint.training.data_loader import local_updates
from bleuprint.training.job import Job
from bleuprint.training.loss import batch_loss
from bleuprint.training.observer import Observer
from bleuprint.training.train_step import OutOfMemory
from prepared import prepare
from trainings import ONE_PROCESS, bpe_units, new_train_step, toy_pairs, train_here

SETTINGS = systems.train(tokens_per_update=300, max_tokens=60, save_interval=10, max_updates=50)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A binarized toy corpus. Two of its 202 training pairs contain the rare word Ŵ."""
    held_out = toy_pairs(20, 2)
    pairs = [*toy_pairs(200, 1), ("Ŵ ba", "BA"), ("be Ŵ", "BE")]
    sets = {"train": pairs, "valid": held_out, "test.x": held_out}
    return prepare(tmp_path_factory.mktemp("learner"), sets, units=bpe_units(40)).binary


class WarningLog(Observer):
    """Keeps the warnings of a training."""

    def __init__(self):
        self.messages: list[str] = []

    def warned(self, message):
        self.messages.append(message)


def planned_updates(corpus):
    """Yield the updates of a training, from the first one."""
    return local_updates(corpus, systems.system(train=SETTINGS), 1, Position(), ONE_PROCESS)


def run_out_of_memory_at(monkeypatch, batch_numbers):
    """Make the loss of some batches, counted from 1, run out of memory as on a GPU."""
    batch_count = 0

    def loss_or_error(*arguments):
        nonlocal batch_count
        batch_count += 1
        if batch_count in batch_numbers:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return batch_loss(*arguments)

    monkeypatch.setattr(train_step, "batch_loss", loss_or_error)


def update_and_batch_with(corpus, token):
    """Return the first update, and in it the first batch, that has a source token."""
    sources = corpus.side("train", "de")
    for local_update in planned_updates(corpus):
        for batch in local_update.update.batches:
            if any(token in sources[row] for row in batch.rows.tolist()):
                return local_update, batch
    raise AssertionError("no batch has the token")


def test_the_error_of_a_nan_loss_names_the_pairs_of_the_batch_that_caused_it(corpus):
    """The embedding of one rare word, Ŵ, is NaN, and so is the loss of the batch that contains it.

    The message names the first five pairs of this batch, by their line numbers.
    """
    step = new_train_step(corpus, SETTINGS, tie_embeddings="none")
    (rare_token,) = corpus.segmentation("de").vocabulary.encode(["Ŵ"])
    with torch.no_grad():
        step.model.source_embedding.weight[rare_token] = torch.nan
    update, batch = update_and_batch_with(corpus, rare_token)

    pending = step.update(9, update)

    line_numbers = [str(row + 1) for row in batch.rows[:5]]
    message = f"loss of update 9 is nan.* training pairs {', '.join(line_numbers)}"
    with pytest.raises(UserError, match=message):
        step.read_stats(pending)


def test_an_infinite_gradient_ends_the_training(corpus, monkeypatch):
    """The loss of the update is finite, but the weights after it would be infinite or NaN."""
    step = new_train_step(corpus, SETTINGS)
    # Replace the norm of the gradient, since a small model does not overflow.
    monkeypatch.setattr(step.optimizer, "grad_norm", lambda: torch.tensor(math.inf))

    pending = step.update(1, next(planned_updates(corpus)))

    message = r"^the loss of update 1 is \d.*, its gradient's norm inf. Lower the learning rate"
    with pytest.raises(UserError, match=message):
        step.read_stats(pending)


def test_an_update_that_runs_out_of_memory_leaves_weights_and_gradient_unchanged(
    corpus, monkeypatch
):
    """The update has several batches. The third fails, when two have added to the gradient."""
    step = new_train_step(corpus, SETTINGS)
    old_weights = step.optimizer.weights.clone()
    run_out_of_memory_at(monkeypatch, batch_numbers={3})

    with pytest.raises(OutOfMemory):
        step.update(1, next(planned_updates(corpus)))

    assert torch.equal(step.optimizer.weights, old_weights)
    assert torch.count_nonzero(step.optimizer.gradient) == 0


def test_after_an_update_that_ran_out_of_memory_the_next_one_gives_the_usual_result(
    corpus, monkeypatch
):
    """What two of its batches had added to the gradient must not count in the next update."""
    update = next(planned_updates(corpus))
    undisturbed_step = new_train_step(corpus, SETTINGS)
    expected_stats = undisturbed_step.read_stats(undisturbed_step.update(1, update))
    step = new_train_step(corpus, SETTINGS)
    run_out_of_memory_at(monkeypatch, batch_numbers={3})
    with pytest.raises(OutOfMemory):
        step.update(1, update)  # The third batch does not fit.

    stats = step.read_stats(step.update(1, update))

    assert stats == expected_stats
    assert torch.equal(step.optimizer.weights, undisturbed_step.optimizer.weights)


@pytest.fixture
def job(corpus):
    """A training of 50 updates, which saves a checkpoint after each tenth update."""
    split = corpus.folder.with_name("split")
    return Job(Run("s", "c", 1), systems.system(train=SETTINGS), corpus.folder, split, "code")


def test_a_training_skips_one_update_that_runs_out_of_memory(job, tmp_path, monkeypatch):
    """One of the 50 updates fails at its ninth batch; the others train, with one warning."""
    warnings = WarningLog()
    run_out_of_memory_at(monkeypatch, batch_numbers={9})

    state = train_here(job, tmp_path, warnings).state

    assert state.update == 50
    assert state.skipped == 1
    (warning,) = warnings.messages
    assert "did not fit into the memory of cpu and is skipped" in warning


@pytest.fixture
def saved_after_two_failures(job, tmp_path, monkeypatch):
    """The checkpoint of a training in which two updates ran out of memory, and which so ended."""
    second_job = dataclasses.replace(job, run=Run("s", "c", 2))
    run_out_of_memory_at(monkeypatch, batch_numbers={9, 30})
    with pytest.raises(UserError, match=r"the second such update\. Lower train\.max_tokens \(60\)"):
        train_here(second_job, tmp_path)
    return checkpoint.load_latest(tmp_path / "s.c.2")


def test_a_second_update_that_runs_out_of_memory_ends_the_training(saved_after_two_failures):
    assert saved_after_two_failures.state["skipped"] == 2


def test_a_training_that_ends_by_want_of_memory_saves_a_checkpoint_first(saved_after_two_failures):
    save_interval = 10
    is_regular = saved_after_two_failures.update % save_interval == 0

    assert not is_regular


@pytest.mark.parametrize(
    ("error", "raised_type"),
    [
        pytest.param(
            torch.OutOfMemoryError("CUDA out of memory."), OutOfMemory, id="CUDA's allocator"
        ),
        pytest.param(
            RuntimeError("CUDA error: out of memory"), OutOfMemory, id="another CUDA function"
        ),
        pytest.param(
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"),
            OutOfMemory,
            id="cuBLAS",
        ),
        pytest.param(
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            OutOfMemory,
            id="CPU",
        ),
        pytest.param(
            RuntimeError("shapes cannot be multiplied"), RuntimeError, id="not about memory"
        ),
    ],
)
def test_errors_about_memory_are_recognized_by_their_messages(
    corpus, monkeypatch, error, raised_type
):
    """Libraries report too little memory by different errors; others keep their type."""

    def raise_error(*_):
        raise error

    monkeypatch.setattr(train_step, "batch_loss", raise_error)
    step = new_train_step(corpus, SETTINGS)

    with pytest.raises(raised_type):
        step.update(1, next(planned_updates(corpus)))


def test_torchs_error_for_a_tensor_that_is_too_large_is_recognized(corpus, monkeypatch):
    """The wording of this error may change with the version of torch."""

    def allocate_four_exabytes(*_):
        return torch.empty(1 << 62, dtype=torch.uint8)

    monkeypatch.setattr(train_step, "batch_loss", allocate_four_exabytes)
    step = new_train_step(corpus, SETTINGS)

    with pytest.raises(OutOfMemory):
        step.update(1, next(planned_updates(corpus)))
