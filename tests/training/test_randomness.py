"""What a training draws, and its learning rates: by the seed, the epoch and the update."""

import dataclasses

import pytest
import torch

import systems
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.config.paths import Run
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.batching import PlannedBatch, plan_epoch
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import named_weights
from bleuprint.training import train_step
from bleuprint.training import trainer as trainer_module
from bleuprint.training.data_loader import BatchReader
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.loss import batch_loss
from bleuprint.training.lr_schedule import learning_rate
from bleuprint.training.observer import Observer
from bleuprint.training.trainer import Trainer
from prepared import prepare
from trainings import ALONE, merges, toy_pairs

pytestmark = pytest.mark.usefixtures("one_thread")
TRAIN = systems.train(
    max_updates=None,
    max_epochs=2,
    bpe_dropout=0.3,
    lr_schedule=LrSchedule(noam=Noam(factor=1.0, warmup_updates=3)),
    label_smoothing=0.2,
    label_smoothing_target="non_target",
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    sets = {"train": toy_pairs(80, 1), "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    return prepare(tmp_path_factory.mktemp("prepared"), sets, units=merges(30, joint=False))


def trainer(prepared, seed, folder):
    model = systems.model(dropout=0.1, tie_embeddings="decoder")
    system = dataclasses.replace(systems.system(train=TRAIN), model=model)
    run = Run("s", "c", seed)
    job = Job(run, system, prepared.root / "binary", prepared.root / "split", "code")
    return Trainer(job, ALONE, folder, Fingerprints.from_job(job), Observer())


def test_the_seed_decides_weights_and_batches_and_each_update_draws_anew(
    prepared, tmp_path, monkeypatch
):
    batches: list[Batch] = []
    draws: list[float] = []

    def recorded(model, batch, *settings):
        assert settings == (TRAIN.label_smoothing, TRAIN.label_smoothing_target)
        batches.append(batch)
        draws.append(float(torch.rand(1)))  # dropout would draw the same
        return batch_loss(model, batch, *settings)

    monkeypatch.setattr(train_step, "batch_loss", recorded)
    monkeypatch.setattr(trainer_module, "dry_run", lambda *_: None)
    corpus = prepared.binary
    sizes = [len(corpus.segmentation(language).vocabulary) for language in ("de", "en")]
    for seed in (5, 6):
        made = trainer(prepared, seed, tmp_path / str(seed))
        torch.manual_seed(seed)
        weights = named_weights(Transformer(made.model.settings, *sizes))
        assert all(torch.equal(w, weights[name]) for name, w in named_weights(made.model).items())
        made.run()
        expected = planned(corpus, seed)
        for side in ("source", "target"):
            expected_ids = [getattr(batch, side).tolist() for batch in expected]
            assert [getattr(batch, side).tolist() for batch in batches] == expected_ids
        batches.clear()
        assert [point["learning_rate"] for point in made.state.curve] == [
            learning_rate(TRAIN.lr_schedule, update, made.model.settings.d_model)
            for update in range(1, made.state.update + 1)
        ]
        assert made.state.update > 4
    # no batch of an update, no update and no seed repeats another's
    assert len(set(draws)) == len(draws)


def planned(corpus, seed):
    """The batches of two epochs."""
    lengths = [corpus.side("train", language).lengths for language in ("de", "en")]
    batches = [
        PlannedBatch(epoch, rows)
        for epoch in (0, 1)
        for rows in plan_epoch(*lengths, TRAIN.max_tokens, seed, epoch)
    ]
    read = BatchReader(corpus, TRAIN, seed, systems.MODEL.max_positions)(batches)
    return [Batch.from_ids(part) for parts in read for part in parts]
