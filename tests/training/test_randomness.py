"""What a training draws, and its learning rates: by the seed, the epoch and the update."""

import dataclasses
from types import SimpleNamespace

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
from trainings import ONE_PROCESS, bpe_units, toy_pairs

pytestmark = pytest.mark.usefixtures("one_thread")
SEEDS = (5, 6)
SETTINGS = systems.train(
    max_updates=None,
    max_epochs=2,
    bpe_dropout=0.3,
    lr_schedule=LrSchedule(noam=Noam(factor=1.0, warmup_updates=3)),
    label_smoothing=0.2,
    label_smoothing_target="non_target",
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Prepare a toy text of 80 training pairs, with a vocabulary for each language."""
    sets = {"train": toy_pairs(80, 1), "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    return prepare(tmp_path_factory.mktemp("prepared"), sets, units=bpe_units(30, joint=False))


def new_trainer(prepared, seed, folder):
    """Return a trainer of a small model, with dropout and BPE-dropout, before its first update."""
    model = systems.model(dropout=0.1, tie_embeddings="decoder")
    system = dataclasses.replace(systems.system(train=SETTINGS), model=model)
    run = Run("s", "c", seed)
    job = Job(run, system, prepared.root / "binary", prepared.root / "split", "code")
    return Trainer(job, ONE_PROCESS, folder, Fingerprints.from_job(job), Observer())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_weights_are_drawn_with_the_seed_of_the_training(prepared, tmp_path, seed):
    """The reference is a model that is made directly after torch got the same seed."""
    trainer = new_trainer(prepared, seed, tmp_path)

    weights = named_weights(trainer.model)

    source_size = len(prepared.binary.segmentation("de").vocabulary)
    target_size = len(prepared.binary.segmentation("en").vocabulary)
    torch.manual_seed(seed)
    expected_model = Transformer(trainer.model.settings, source_size, target_size)
    for name, expected_weights in named_weights(expected_model).items():
        assert torch.equal(weights[name], expected_weights), name


@pytest.fixture(scope="module")
def trainings(prepared, tmp_path_factory):
    """Train for two epochs with each seed.

    Returns:
        By seed, the `trainer`; and for each batch in the order of training its ids in `batches`,
        the label smoothing and its target in `smoothing`, and in `random_numbers` the number that
        torch draws next, as dropout would.
    """
    records = {}
    for seed in SEEDS:
        record = SimpleNamespace(trainer=None, batches=[], smoothing=[], random_numbers=[])

        def recorded_loss(model, batch, *smoothing, record=record):
            record.batches.append(batch)
            record.smoothing.append(smoothing)
            record.random_numbers.append(float(torch.rand(1)))
            return batch_loss(model, batch, *smoothing)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(train_step, "batch_loss", recorded_loss)
            patch.setattr(trainer_module, "dry_run", lambda *_: None)
            record.trainer = new_trainer(prepared, seed, tmp_path_factory.mktemp("training"))
            record.trainer.run()
        records[seed] = record
    return records


def batches_of_two_epochs(corpus, seed):
    """Plan the batches of the training set for two epochs, and read them with BPE-dropout."""
    source_lengths = corpus.side("train", "de").lengths
    target_lengths = corpus.side("train", "en").lengths
    planned_batches = []
    for epoch in (0, 1):
        for rows in plan_epoch(source_lengths, target_lengths, SETTINGS.max_tokens, seed, epoch):
            planned_batches.append(PlannedBatch(epoch, rows))
    reader = BatchReader(corpus, SETTINGS, seed, systems.MODEL.max_positions)
    batches = []
    for parts in reader(planned_batches):
        for part in parts:
            batches.append(Batch.from_ids(part))
    return batches


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_seed_decides_the_batches_and_their_subwords(prepared, trainings, seed, side):
    """A training of two epochs with BPE-dropout; the reference plans its batches with this seed."""
    trained_ids = [getattr(batch, side).tolist() for batch in trainings[seed].batches]

    expected_batches = batches_of_two_epochs(prepared.binary, seed)
    expected_ids = [getattr(batch, side).tolist() for batch in expected_batches]
    assert trained_ids == expected_ids


def test_each_batch_of_each_update_and_seed_has_its_own_dropout(trainings):
    """In two trainings, a random number was drawn at each batch, in place of a dropout mask."""
    random_numbers = []
    for training in trainings.values():
        random_numbers += training.random_numbers

    different_numbers = set(random_numbers)
    assert len(different_numbers) == len(random_numbers)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_update_has_the_learning_rate_of_its_number(trainings, seed):
    """The curve has a point for each update; the warmup has three updates."""
    trainer = trainings[seed].trainer
    assert trainer.state.update > 3  # There are also updates after the warmup.

    rates = [point["learning_rate"] for point in trainer.state.curve]

    d_model = trainer.model.settings.d_model
    expected_rates = []
    for update in range(1, trainer.state.update + 1):
        expected_rates.append(learning_rate(SETTINGS.lr_schedule, update, d_model))
    assert rates == expected_rates


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_is_computed_with_the_label_smoothing_of_the_settings(trainings, seed):
    assert set(trainings[seed].smoothing) == {(0.2, "non_target")}
