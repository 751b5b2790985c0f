"""The dry run: what does not fit into memory is refused, with a setting that does."""

import pytest
import torch

import systems
from bleuprint.config.paths import Run
from bleuprint.dataset.batching import Position, plan_updates
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import UserError
from bleuprint.training import train_step, trainer
from bleuprint.training.dry_run import dry_run
from bleuprint.training.job import Job
from bleuprint.training.loss import batch_loss
from bleuprint.training.shared_plans import EpochPlanner
from trainings import ONE_PROCESS, new_train_step, train_here


def limit_memory(monkeypatch, max_source_tokens):
    """Simulate a GPU whose memory is too small for batches of more source tokens than a limit.

    Returns:
        A list that grows: the number of source tokens of each batch that is tried.
    """
    tried_sizes: list[int] = []

    def limited_loss(model, batch, *settings):
        source_tokens = batch.source.numel()
        tried_sizes.append(source_tokens)
        if source_tokens > max_source_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return batch_loss(model, batch, *settings)

    monkeypatch.setattr(train_step, "batch_loss", limited_loss)
    return tried_sizes


def longest_sentence(corpus):
    """Return the number of tokens of the longest sentence of the training set."""
    return max(corpus.side("train", language).lengths.max() for language in ("de", "en"))


for_each_memory_limit = pytest.mark.parametrize(
    ("max_source_tokens", "fitting_max_tokens"),
    [
        pytest.param(60, 50, id="60 tokens fit, so of 100 and 50 tried the 50"),
        pytest.param(30, 25, id="30 tokens fit, so of 100, 50 and 25 tried the 25"),
    ],
)


@for_each_memory_limit
def test_the_error_names_a_batch_size_that_fits(
    corpus, monkeypatch, max_source_tokens, fitting_max_tokens
):
    """The dry run halves `max_tokens` until the largest batches fit into memory."""
    tried_sizes = limit_memory(monkeypatch, max_source_tokens)
    settings = systems.train(max_tokens=100, tokens_per_update=300)

    message = (
        rf"memory of cpu. Lower train.max_tokens \(100\) to {fitting_max_tokens}, which fits. "
        r"You can keep train.tokens_per_update. Updates will contain different sentences: to "
        r"compare systems, lower train.max_tokens for all of them"
    )
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, settings), corpus, settings, ONE_PROCESS)

    # Of the size that fits it has tried a batch of long sentences and one of short sentences.
    last_tried_sizes = tried_sizes[-2:]
    assert max(last_tried_sizes) <= max_source_tokens


@for_each_memory_limit
def test_the_batch_size_that_the_error_names_passes_the_dry_run(
    corpus, monkeypatch, max_source_tokens, fitting_max_tokens
):
    """Users who follow the advice must not get the same error again."""
    limit_memory(monkeypatch, max_source_tokens)
    advised_settings = systems.train(max_tokens=fitting_max_tokens, tokens_per_update=300)
    step = new_train_step(corpus, advised_settings)

    # The dry run raises an error if a batch does not fit.
    dry_run(step, corpus, advised_settings, ONE_PROCESS)


def test_the_dry_run_tries_no_more_sentences_than_an_update_has(corpus, monkeypatch):
    """With room for 10,000 tokens per batch, the 3 sentences of an update are one batch."""
    tried_sizes = limit_memory(monkeypatch, max_source_tokens=10_000)
    settings = systems.train(tokens_per_update=None, sentences_per_update=3, max_tokens=10_000)

    dry_run(new_train_step(corpus, settings), corpus, settings, ONE_PROCESS)

    most_tokens_of_an_update = 3 * longest_sentence(corpus)
    assert max(tried_sizes) <= most_tokens_of_an_update


def test_the_error_says_that_updates_by_sentences_keep_their_sentences(corpus, monkeypatch):
    """An update of 50 sentences has the same 50 sentences, however many batches it is split into.

    Of batches of 100 and 50 tokens, those of 50 fit into the simulated memory for 60.
    """
    limit_memory(monkeypatch, max_source_tokens=60)
    settings = systems.train(tokens_per_update=None, sentences_per_update=50, max_tokens=100)

    message = r"to 50, which fits\. Keep train\.sentences_per_update: updates then keep their"
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, settings), corpus, settings, ONE_PROCESS)


def sentences_of_updates(corpus, max_tokens, **update_size):
    """Return the rows of the sentences of each update of an epoch, in order."""
    settings = systems.train(max_tokens=max_tokens, **update_size)
    plan = plan_updates(
        EpochPlanner(corpus, settings, seed=1),
        start=Position(),
        epochs=1,
        **update_size,
    )
    updates = []
    for update, _ in plan:
        rows = []
        for batch in update.batches:
            rows += batch.rows.tolist()
        updates.append(sorted(rows))
    return updates


@pytest.mark.parametrize(
    ("update_size", "are_equal"),
    [
        pytest.param(
            {"tokens_per_update": 400, "sentences_per_update": None}, False, id="400 tokens"
        ),
        pytest.param(
            {"tokens_per_update": None, "sentences_per_update": 30}, True, id="30 sentences"
        ),
    ],
)
def test_smaller_batches_change_the_sentences_of_updates_of_tokens_but_not_of_sentences(
    corpus, update_size, are_equal
):
    """The error about a batch that does not fit tells users so before they lower `max_tokens`."""
    with_large_batches = sentences_of_updates(corpus, max_tokens=100, **update_size)
    with_small_batches = sentences_of_updates(corpus, max_tokens=50, **update_size)

    assert (with_large_batches == with_small_batches) == are_equal


def test_the_smallest_batch_that_is_tried_is_the_longest_sentence(corpus, monkeypatch):
    """In this memory nothing fits, so the dry run ends when a batch has one sentence."""
    tried_sizes = limit_memory(monkeypatch, max_source_tokens=0)
    settings = systems.train(max_tokens=100, tokens_per_update=300)

    message = r"nor does a smaller one\. This machine has .*\. Lower train\.max_tokens \(100\)"
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, settings), corpus, settings, ONE_PROCESS)

    first_size = tried_sizes[0]
    last_size = tried_sizes[-1]
    assert last_size <= longest_sentence(corpus) < first_size


class GroupWithSmallerMachine(Group):
    """Two processes; the batches of the first two sizes do not fit into the memory of the other."""

    other_failures = iter([True, True, False])

    def any(self, flag):
        return next(self.other_failures) or flag


def test_the_error_names_a_batch_size_that_fits_on_all_processes(corpus):
    """On the other process 100 and 50 tokens do not fit, and 25 do; on this one all fit."""
    group = GroupWithSmallerMachine(0, 2, torch.device("cpu"))
    settings = systems.train(max_tokens=100, tokens_per_update=300)

    with pytest.raises(UserError, match=r"\(100\) to 25, which fits"):
        dry_run(new_train_step(corpus, settings), corpus, settings, group)


def test_the_dry_run_computes_all_layers_in_spite_of_layer_drop(corpus):
    """Layer drop skips nine of ten layers at random; the memory must suffice for all of them."""
    settings = systems.train(max_tokens=100, tokens_per_update=300)
    step = new_train_step(corpus, settings, encoder_layers=8, layer_drop=0.9)
    computed_layers: list[int] = []
    for number, layer in enumerate(step.model.encoder):
        layer.register_forward_hook(lambda *_, number=number: computed_layers.append(number))

    dry_run(step, corpus, settings, ONE_PROCESS)

    all_layers = [0, 1, 2, 3, 4, 5, 6, 7]
    # The dry run computes two batches: one of long sentences and one of short sentences.
    assert computed_layers == all_layers + all_layers
    assert step.model.layer_drop == 0.9


def test_the_dry_run_leaves_weights_and_gradient_unchanged(corpus):
    """The dry run computes gradients, which must not count in the first update."""
    settings = systems.train(max_tokens=100, tokens_per_update=300)
    step = new_train_step(corpus, settings, encoder_layers=8, layer_drop=0.9)
    old_weights = step.optimizer.weights.clone()

    dry_run(step, corpus, settings, ONE_PROCESS)

    assert torch.equal(step.optimizer.weights, old_weights)
    assert torch.count_nonzero(step.optimizer.gradient) == 0


def test_a_model_that_does_not_fit_into_memory_is_refused(corpus, tmp_path, monkeypatch):
    """The weights themselves are too large, so the error advises a smaller model."""

    def raise_out_of_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    # Instead of building the model, the training runs out of memory.
    monkeypatch.setattr(trainer, "Transformer", raise_out_of_memory)
    run = Run(system="s", corpus="c", seed=1)
    job = Job(run, systems.system(), corpus.folder, corpus.folder.parent, code_fingerprint="code")

    message = (
        r"do not fit into the memory of cpu\. This machine has .*free.*\. Lower model.d_model \("
    )
    with pytest.raises(UserError, match=message):
        train_here(job, tmp_path)
