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
from trainings import ALONE, learner, train_here

SETTINGS = systems.train(tokens_per_update=300, max_tokens=100)


def limit(patch, tokens):
    """Have batches of more source tokens than that run out of memory, with the error of a GPU."""
    sizes: list[int] = []

    def limited(model, batch, *settings):
        sizes.append(batch.source.numel())
        if sizes[-1] > tokens:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return batch_loss(model, batch, *settings)

    patch.setattr(train_step, "batch_loss", limited)
    return sizes


@pytest.mark.parametrize(("tokens", "fits"), [(60, 50), (30, 25)])
def test_a_size_that_fits_is_named(corpus, monkeypatch, tokens, fits):
    sizes = limit(monkeypatch, tokens)
    line = (
        rf"memory of cpu: lower train.max_tokens \(100\) to {fits}, which fits; "
        r"train.tokens_per_update may stay. Updates will have other sentences: to compare systems, "
        r"lower it for all of them"
    )
    with pytest.raises(UserError, match=line):
        dry_run(learner(corpus, SETTINGS), corpus, SETTINGS, ALONE)
    assert max(sizes[-2:]) <= tokens
    dry_run(
        learner(corpus, SETTINGS), corpus, dataclasses.replace(SETTINGS, max_tokens=fits), ALONE
    )


def test_batches_have_no_more_sentences_than_an_update(corpus, monkeypatch):
    sizes = limit(monkeypatch, 10_000)
    settings = systems.train(tokens_per_update=None, sentences_per_update=3, max_tokens=10_000)
    dry_run(learner(corpus, settings), corpus, settings, ALONE)
    longest = max(corpus.side("train", language).lengths.max() for language in ("de", "en"))
    assert max(sizes) <= 3 * longest


def test_updates_of_sentences_keep_them(corpus, monkeypatch):
    limit(monkeypatch, 60)
    settings = systems.train(tokens_per_update=None, sentences_per_update=50, max_tokens=100)
    line = r"to 50, which fits; updates keep their sentences, and train.sentences_per_update may"
    with pytest.raises(UserError, match=line):
        dry_run(learner(corpus, settings), corpus, settings, ALONE)


@pytest.mark.parametrize(
    ("tokens", "sentences", "are_equal"), [(400, None, False), (None, 30, True)]
)
def test_what_the_advice_says_of_updates_is_true(corpus, tokens, sentences, are_equal):
    def updates(max_tokens):
        plan = plan_updates(
            *(corpus.side("train", language).lengths for language in ("de", "en")),
            tokens_per_update=tokens,
            sentences_per_update=sentences,
            max_tokens=max_tokens,
            seed=1,
            start=Position(),
            epochs=1,
        )
        return [
            sorted(row for batch in update.batches for row in batch.rows.tolist())
            for update, _ in plan
        ]

    assert (updates(100) == updates(50)) is are_equal


def test_the_longest_sentence_is_the_least(corpus, monkeypatch):
    sizes = limit(monkeypatch, 0)
    longest = max(corpus.side("train", language).lengths.max() for language in ("de", "en"))
    line = r"and no smaller one fits \(this machine has .*\): lower train\.max_tokens \(100\)"
    with pytest.raises(UserError, match=line):
        dry_run(learner(corpus, SETTINGS), corpus, SETTINGS, ALONE)
    assert sizes[-1] <= longest < sizes[0]


def test_all_processes_name_what_fits_on_all(corpus):
    class Beside(Group):
        """With another process, into whose memory the first two sizes do not fit."""

        others = iter([True, True, False])

        def any(self, flag):
            return next(self.others) or flag

    with pytest.raises(UserError, match=r"\(100\) to 25, which fits"):
        dry_run(learner(corpus, SETTINGS), corpus, SETTINGS, Beside(0, 2, torch.device("cpu")))


def test_all_layers_are_tried_and_nothing_is_left(corpus):
    made = learner(corpus, SETTINGS, encoder_layers=8, layer_drop=0.9)
    before = made.optimizer.weights.clone()
    calls: list[int] = []
    for number, layer in enumerate(made.model.encoder):
        layer.register_forward_hook(lambda *_, number=number: calls.append(number))
    dry_run(made, corpus, SETTINGS, ALONE)
    assert calls == [*range(8)] * 2
    assert made.model.layer_drop == 0.9
    assert torch.equal(made.optimizer.weights, before) and not made.optimizer.gradient.any()


def test_a_model_that_does_not_fit_is_refused(corpus, tmp_path, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(trainer, "Transformer", full)
    system = systems.system(train=SETTINGS)
    job = Job(Run("s", "c", 1), system, corpus.folder, corpus.folder.parent, "code")
    line = r"do not fit into the memory of cpu \(this machine has .*free\S*: lower model.d_model \("
    with pytest.raises(UserError, match=line):
        train_here(job, tmp_path)
