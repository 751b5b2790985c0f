"""Training by other settings: updates of sentences, SGD, a moving average of the weights."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import systems
from bleuprint.config.optimization import Constant, LrSchedule, Optimizer
from bleuprint.config.system import Average
from bleuprint.dataset.batch import Batch, read_ids
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.comet import folder_sha256
from bleuprint.training import trainer as trainer_module
from bleuprint.training.history import TrainingFacts
from bleuprint.training.loss import batch_loss
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints
from params import write_resolved
from shared_folders import left_unchanged
from trainings import job_in, make_project, train, train_here, untrained_copy, write_params

pytestmark = pytest.mark.usefixtures("one_thread")
RESULTS = Path("results", "micro", "toy", "1")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """Make the toy project. Tests copy it and leave it unchanged."""
    root = make_project(tmp_path_factory.mktemp("untrained"))
    with left_unchanged(root):
        yield root


@pytest.fixture(scope="module", params=[1, 2], ids=["1 process", "2 processes"])
def trained_by_sentences(request, untrained, tmp_path_factory):
    """Train without dropout, with updates of 40 sentence pairs in batches of at most 70 tokens."""
    root = untrained_copy(untrained, tmp_path_factory.mktemp("by-sentences"))
    write_params(
        root,
        tokens_per_update=None,
        sentences_per_update=40,
        max_tokens=70,
        max_updates=15,
        save_interval=5,
        validate_interval=15,
    )
    params = root / "params.yaml"
    content = params.read_text()
    content = content.replace("embedding: 0.1", "embedding: 0.0")
    content = content.replace("residual: 0.1", "residual: 0.0")
    params.write_text(content)
    write_resolved(root)
    train(root, processes=request.param)
    return root


def test_the_loss_of_an_update_of_sentences_is_that_of_one_batch_of_them(trained_by_sentences):
    """The first update has 40 pairs, in batches of 70 tokens, in one process or two.

    The reference computes the loss of the same 40 pairs as one batch, with the first weights.
    """
    corpus = BinaryCorpus(trained_by_sentences / "data" / "binary" / "toy")
    source_lengths = corpus.side("train", "de").lengths
    target_lengths = corpus.side("train", "en").lengths
    batches = plan_epoch(
        source_lengths, target_lengths, max_tokens=70, seed=1, epoch=0, sentences_per_update=40
    )
    first_forty = np.concatenate(batches)[:40]
    tokens = target_lengths[first_forty].sum()
    torch.manual_seed(1)  # The seed of the training, which decides its first weights.
    vocabulary_size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), vocabulary_size, vocabulary_size)
    one_batch = Batch.from_ids(read_ids(corpus, "train", first_forty))
    loss = batch_loss(model, one_batch, 0.1) / tokens
    gradient = torch.autograd.grad(loss, list(model.parameters()))
    gradient_norm = torch.cat([part.flatten() for part in gradient]).norm()

    first_update = read_json(trained_by_sentences / RESULTS / "curves.json")["training"][0]

    assert first_update["tokens"] == tokens
    assert first_update["loss"] == pytest.approx(loss.item(), rel=1e-5)
    assert first_update["gradient_norm"] == pytest.approx(gradient_norm.item(), rel=1e-4)


def test_updates_of_sentences_train_on_each_pair_once_an_epoch(trained_by_sentences):
    """The training had 15 updates of 40 pairs: one epoch of 594 pairs, whose last update has 34."""
    corpus = BinaryCorpus(trained_by_sentences / "data" / "binary" / "toy")
    target_lengths = corpus.side("train", "en").lengths

    facts = read_json(trained_by_sentences / RESULTS / "training.json")

    assert len(target_lengths) == 594
    assert facts["target_tokens"] == target_lengths.sum()


class KilledAtThirdCheckpoint(Observer):
    """Ends a training, as Ctrl-C does, when it has saved its third checkpoint."""

    checkpoints = 0

    def saved(self, _):
        self.checkpoints += 1
        if self.checkpoints == 3:
            raise KeyboardInterrupt


class UpdateLog(Observer):
    """Keeps loss and target tokens of each update; may end the training, as Ctrl-C does.

    Args:
        last_update: The update after which the training ends; None for its usual end.
    """

    def __init__(self, last_update=None):
        self.last_update = last_update
        self.losses = {}
        self.tokens = {}

    def updated(self, state, stats):
        self.losses[state.update] = stats.loss
        self.tokens[state.update] = stats.target_tokens
        if state.update == self.last_update:
            raise KeyboardInterrupt


@pytest.fixture
def job_with_curve(untrained, tmp_path, monkeypatch):
    """A training of 50 updates, with a point of its curve after 10 and a checkpoint after 4."""
    monkeypatch.setattr(trainer_module, "_CURVE_POINTS", 5)
    job = job_in(untrained_copy(untrained, tmp_path), monkeypatch)
    settings = dataclasses.replace(job.system.train, save_interval=4, max_updates=50)
    return dataclasses.replace(job, system=dataclasses.replace(job.system, train=settings))


def test_a_point_of_the_curve_is_the_mean_loss_since_the_previous_point(job_with_curve, tmp_path):
    """The curve has a point each ten updates; an observer logs the loss of every update."""
    log = UpdateLog()

    curve = train_here(job_with_curve, tmp_path / "work", log).state.curve

    assert [point["update"] for point in curve] == [10, 20, 30, 40, 50]
    for point in curve:
        updates = range(point["update"] - 9, point["update"] + 1)
        loss = sum(log.losses[update] for update in updates)
        tokens = sum(log.tokens[update] for update in updates)
        assert point["loss"] == pytest.approx(loss / tokens, rel=1e-12)


@pytest.mark.parametrize(
    ("last_update", "last_checkpoint"),
    [
        pytest.param(7, 4, id="killed after update 7, continued from 4"),
        pytest.param(15, 12, id="killed after update 15, continued from 12"),
    ],
)
def test_a_training_that_continues_between_two_points_of_the_curve_has_the_same_curve(
    job_with_curve, tmp_path, last_update, last_checkpoint
):
    """A checkpoint every four updates, a point of the curve every ten.

    So the checkpoint must contain the losses since the previous point.
    """
    uninterrupted = train_here(job_with_curve, tmp_path / "uninterrupted").state
    with pytest.raises(KeyboardInterrupt):
        train_here(job_with_curve, tmp_path / "killed", UpdateLog(last_update))

    log = UpdateLog()
    continued = train_here(job_with_curve, tmp_path / "killed", log).state

    first_update = min(log.losses)
    assert first_update == last_checkpoint + 1
    assert continued.curve == uninterrupted.curve


def train_and_export(job, work, models):
    """Train to the end, or continue to it, and export the checkpoints to a folder."""
    training = train_here(job, work)
    assert training.state.update == job.system.train.max_updates
    export_checkpoints(job, training.folder, training.fingerprints, models)


def job_with(changes, root, monkeypatch):
    """Return the training of a project, with changed settings, to be exported as it ends."""
    job = job_in(root, monkeypatch)
    settings = dataclasses.replace(job.system.train, **changes)
    system = dataclasses.replace(job.system, train=settings, average=Average(last=1))
    return dataclasses.replace(job, system=system)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ema": 0.9}, id="moving average"),
        pytest.param({"tokens_per_update": None, "sentences_per_update": 32}, id="by sentences"),
        pytest.param({"precision": "bfloat16", "bpe_dropout": 0.3}, id="bfloat16, BPE-dropout"),
        pytest.param(
            {
                "optimizer": Optimizer(name="sgd", momentum=0.9, weight_decay=0.0),
                "ema": 0.5,
            },
            id="SGD, moving average",
        ),
    ],
)
def test_a_killed_training_that_continues_exports_the_same_bytes(
    untrained, tmp_path, monkeypatch, changes
):
    """The training is interrupted at its third checkpoint and started again."""
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")  # Any CPU may compute in bfloat16.
    job = job_with(changes, untrained_copy(untrained, tmp_path), monkeypatch)
    train_and_export(job, tmp_path / "uninterrupted", tmp_path / "uninterrupted-models")

    with pytest.raises(KeyboardInterrupt):
        train_here(job, tmp_path / "killed", KilledAtThirdCheckpoint())
    train_and_export(job, tmp_path / "killed", tmp_path / "killed-models")

    killed_sha256 = folder_sha256(tmp_path / "killed-models")
    assert killed_sha256 == folder_sha256(tmp_path / "uninterrupted-models")
    # A moving average is exported for the last update only, 50, and only with setting `ema`.
    moving_averages = [path.name for path in (tmp_path / "killed-models").glob("*.ema.safetensors")]
    expected_averages = ["0000050.ema.safetensors"] if "ema" in changes else []
    assert moving_averages == expected_averages


@pytest.fixture(scope="module")
def ended_by_patience(untrained, tmp_path_factory):
    """Train with a learning rate of 0, so that no validation is better than the first one.

    Returns:
        The record of the training, and its output.
    """
    root = untrained_copy(untrained, tmp_path_factory.mktemp("patience"))
    rate_of_zero = LrSchedule(constant=Constant(lr=0.0))
    write_params(root, patience=2, validate_interval=10, lr_schedule=rate_of_zero, max_updates=50)
    output = train(root)
    return TrainingFacts.read(root / RESULTS / "training.json"), output


def test_a_training_ends_when_as_many_validations_as_its_patience_are_not_better(ended_by_patience):
    facts, _ = ended_by_patience

    # The validation of update 10 is the best; those of updates 20 and 30 are not better.
    assert facts.updates == 30


def test_the_record_of_a_training_says_why_it_ended_early(ended_by_patience):
    """It had learning rate 0 and `patience: 2`, with a validation each ten of at most 50 updates.

    So the validation of update 10 stays the best, and two more end the training.
    """
    facts, _ = ended_by_patience

    early_end = facts.early_end
    assert early_end.update == 30
    assert early_end.most_updates == 50
    assert early_end.best_update == 10
    assert early_end.metric == "loss"
    assert early_end.validations == 2
    assert f"best {facts.valid_loss:.3f} at update 10" in str(early_end)


def test_a_training_prints_why_it_ended_early(ended_by_patience):
    facts, output = ended_by_patience

    assert str(facts.early_end) in output


def test_a_complete_training_records_no_early_end(untrained, tmp_path):
    """Patience of 9 validations cannot end a training of 20 updates."""
    root = untrained_copy(untrained, tmp_path)
    write_params(root, patience=9, max_updates=20)

    output = train(root)

    assert "ended at update" not in output
    assert "early_end" not in read_json(root / RESULTS / "training.json")
