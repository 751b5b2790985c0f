"""The dry run: what does not fit into memory is refused, with a setting that does."""

import dataclasses

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
from trainings import ALONE, new_train_step, train_here

SETTINGS = systems.train(tokens_per_update=300, max_tokens=100)


def limit_memory(monkeypatch, max_source_tokens):
    """Make batches of more source tokens than a limit run out of memory, as on a GPU.

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


# From 100 tokens, the setting is halved until the batches fit.
for_each_memory_limit = pytest.mark.parametrize(
    ("max_source_tokens", "fitting_max_tokens"), [(60, 50), (30, 25)]
)


@for_each_memory_limit
def test_the_error_names_a_batch_size_that_fits(
    corpus, monkeypatch, max_source_tokens, fitting_max_tokens
):
    tried_sizes = limit_memory(monkeypatch, max_source_tokens)

    message = (
        rf"memory of cpu: lower train.max_tokens \(100\) to {fitting_max_tokens}, which fits; "
        r"train.tokens_per_update may stay. Updates will have other sentences: to compare systems, "
        r"lower it for all of them"
    )
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, SETTINGS), corpus, SETTINGS, ALONE)

    # Two batches of the size that fits: one of long sentences and one of short sentences.
    assert max(tried_sizes[-2:]) <= max_source_tokens


@for_each_memory_limit
def test_the_batch_size_that_the_error_names_passes_the_dry_run(
    corpus, monkeypatch, max_source_tokens, fitting_max_tokens
):
    limit_memory(monkeypatch, max_source_tokens)
    advised_settings = dataclasses.replace(SETTINGS, max_tokens=fitting_max_tokens)

    dry_run(new_train_step(corpus, SETTINGS), corpus, advised_settings, ALONE)


def test_the_dry_run_tries_no_more_sentences_than_an_update_has(corpus, monkeypatch):
    tried_sizes = limit_memory(monkeypatch, max_source_tokens=10_000)
    settings = systems.train(tokens_per_update=None, sentences_per_update=3, max_tokens=10_000)

    dry_run(new_train_step(corpus, settings), corpus, settings, ALONE)

    assert max(tried_sizes) <= 3 * longest_sentence(corpus)


def test_the_error_says_that_updates_of_a_number_of_sentences_keep_their_sentences(
    corpus, monkeypatch
):
    limit_memory(monkeypatch, max_source_tokens=60)
    settings = systems.train(tokens_per_update=None, sentences_per_update=50, max_tokens=100)

    message = r"to 50, which fits; updates keep their sentences, and train.sentences_per_update may"
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, settings), corpus, settings, ALONE)


def sentences_of_updates(corpus, max_tokens, **update_size):
    """Return the rows of the sentences of each update of an epoch, in order."""
    plan = plan_updates(
        corpus.side("train", "de").lengths,
        corpus.side("train", "en").lengths,
        max_tokens=max_tokens,
        seed=1,
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
            {"tokens_per_update": 400, "sentences_per_update": None}, False, id="by tokens"
        ),
        pytest.param(
            {"tokens_per_update": None, "sentences_per_update": 30}, True, id="by sentences"
        ),
    ],
)
def test_smaller_batches_keep_the_sentences_of_updates_by_sentences_only(
    corpus, update_size, are_equal
):
    """The message of a batch that does not fit says so to users who want to lower its size."""
    with_large_batches = sentences_of_updates(corpus, max_tokens=100, **update_size)
    with_small_batches = sentences_of_updates(corpus, max_tokens=50, **update_size)

    assert (with_large_batches == with_small_batches) == are_equal


def test_the_smallest_batch_that_is_tried_is_the_longest_sentence(corpus, monkeypatch):
    tried_sizes = limit_memory(monkeypatch, max_source_tokens=0)

    message = r"and no smaller one fits \(this machine has .*\): lower train\.max_tokens \(100\)"
    with pytest.raises(UserError, match=message):
        dry_run(new_train_step(corpus, SETTINGS), corpus, SETTINGS, ALONE)

    assert tried_sizes[-1] <= longest_sentence(corpus) < tried_sizes[0]


class GroupWithSmallerMachine(Group):
    """Two processes; the batches of the first two sizes do not fit into the memory of the other."""

    other_failures = iter([True, True, False])

    def any(self, flag):
        return next(self.other_failures) or flag


def test_the_error_names_a_batch_size_that_fits_on_all_processes(corpus):
    group = GroupWithSmallerMachine(0, 2, torch.device("cpu"))

    with pytest.raises(UserError, match=r"\(100\) to 25, which fits"):  # 100, 50, 25
        dry_run(new_train_step(corpus, SETTINGS), corpus, SETTINGS, group)


def test_the_dry_run_computes_all_layers_in_spite_of_layer_drop(corpus):
    step = new_train_step(corpus, SETTINGS, encoder_layers=8, layer_drop=0.9)
    computed_layers: list[int] = []
    for number, layer in enumerate(step.model.encoder):
        layer.register_forward_hook(lambda *_, number=number: computed_layers.append(number))

    dry_run(step, corpus, SETTINGS, ALONE)

    layers_of_a_batch = [0, 1, 2, 3, 4, 5, 6, 7]
    assert computed_layers == layers_of_a_batch + layers_of_a_batch
    assert step.model.layer_drop == 0.9


def test_the_dry_run_leaves_weights_and_gradient_unchanged(corpus):
    step = new_train_step(corpus, SETTINGS, encoder_layers=8, layer_drop=0.9)
    old_weights = step.optimizer.weights.clone()

    dry_run(step, corpus, SETTINGS, ALONE)

    assert torch.equal(step.optimizer.weights, old_weights)
    assert not step.optimizer.gradient.any()


def test_a_model_that_does_not_fit_into_memory_is_refused(corpus, tmp_path, monkeypatch):
    def raise_out_of_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(trainer, "Transformer", raise_out_of_memory)
    system = systems.system(train=SETTINGS)
    job = Job(Run("s", "c", 1), system, corpus.folder, corpus.folder.parent, "code")

    message = (
        r"do not fit into the memory of cpu \(this machine has .*free\S*: lower model.d_model \("
    )
    with pytest.raises(UserError, match=message):
        train_here(job, tmp_path)
