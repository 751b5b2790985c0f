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
from bleuprint.runtime.files import read_json
from bleuprint.scoring.comet import folder_sha256
from bleuprint.training import trainer as trainer_module
from bleuprint.training.history import TrainingFacts
from bleuprint.training.loss import batch_loss
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints
from params import write_resolved
from shared_folders import left_unchanged
from trainings import fresh, job_in, project, train, train_here, write_params

pytestmark = pytest.mark.usefixtures("one_thread")
RESULTS = Path("results", "micro", "toy", "1")


@pytest.fixture(scope="module")
def untrained(tmp_path_factory):
    """The toy project. Not to be changed."""
    root = project(tmp_path_factory.mktemp("untrained"))
    with left_unchanged(root):
        yield root


@pytest.mark.parametrize("processes", [1, 2])
def test_sentences_of_an_update_count_as_one_batch_of_them(untrained, tmp_path, processes):
    """The first update of 40 pairs, in batches of 70 tokens, against all of them in one batch."""
    root = fresh(untrained, tmp_path)
    write_params(
        root,
        tokens_per_update=None,
        sentences_per_update=40,
        max_updates=15,
        save_interval=5,
        validate_interval=15,
    )
    params = root / "params.yaml"
    params.write_text(params.read_text().replace("embedding: 0.1", "embedding: 0.0"))
    params.write_text(params.read_text().replace("residual: 0.1", "residual: 0.0"))
    write_resolved(root)
    train(root, processes)
    corpus = BinaryCorpus(root / "data" / "binary" / "toy")
    lengths = [corpus.side("train", language).lengths for language in ("de", "en")]
    rows = np.concatenate(plan_epoch(*lengths, 70, seed=1, epoch=0, sentences_per_update=40))[:40]
    torch.manual_seed(1)
    size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), size, size)
    loss = batch_loss(model, Batch.from_ids(read_ids(corpus, "train", rows)), 0.1)
    first = read_json(root / RESULTS / "curves.json")["training"][0]
    assert first["tokens"] == lengths[1][rows].sum()
    assert first["loss"] == pytest.approx(loss.item() / first["tokens"], rel=1e-5)
    gradient = torch.autograd.grad(loss / first["tokens"], list(model.parameters()))
    norm = torch.cat([part.flatten() for part in gradient]).norm().item()
    assert first["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    # the 595 pairs are an epoch of 15 updates
    assert read_json(root / RESULTS / "training.json")["target_tokens"] == lengths[1].sum()


class Killed(Observer):
    """Ends a training at its third checkpoint."""

    saves = 0

    def saved(self, _):
        self.saves += 1
        if self.saves == 3:
            raise KeyboardInterrupt


class Interrupting(Observer):
    """Keeps the figures of each update, and ends a training after `last` of them."""

    def __init__(self, last=None):
        self.last = last
        self.losses = {}
        self.tokens = {}

    def updated(self, state, stats):
        self.losses[state.update] = stats.loss
        self.tokens[state.update] = stats.target_tokens
        if state.update == self.last:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("last", "saved"), [(7, 4), (15, 12)])
def test_a_point_of_the_curve_spans_the_kill(untrained, tmp_path, monkeypatch, last, saved):
    """Points are 10 updates apart and checkpoints 4, so that these lie inside an interval."""
    monkeypatch.setattr(trainer_module, "_CURVE_POINTS", 5)
    job = job_in(fresh(untrained, tmp_path), monkeypatch)
    settings = dataclasses.replace(job.system.train, save_interval=4)
    job = dataclasses.replace(job, system=dataclasses.replace(job.system, train=settings))
    figures = Interrupting()
    _, whole, _ = train_here(job, tmp_path / "whole", figures)
    assert [point["update"] for point in whole.curve] == [10, 20, 30, 40, 50]
    for point in whole.curve:
        updates = range(point["update"] - 9, point["update"] + 1)
        loss = sum(figures.losses[update] for update in updates)
        tokens = sum(figures.tokens[update] for update in updates)
        assert point["loss"] == pytest.approx(loss / tokens, rel=1e-12)

    with pytest.raises(KeyboardInterrupt):
        train_here(job, tmp_path / "killed", Interrupting(last))
    resumed = Interrupting()
    _, state, _ = train_here(job, tmp_path / "killed", resumed)
    assert min(resumed.losses) == saved + 1
    assert state.curve == whole.curve


@pytest.mark.parametrize(
    "changes",
    [
        {"ema": 0.9},
        {"tokens_per_update": None, "sentences_per_update": 32},
        {"precision": "bfloat16", "bpe_dropout": 0.3},
        {"optimizer": Optimizer(name="sgd", momentum=0.9, weight_decay=0.0), "ema": 0.5},
    ],
)
def test_a_killed_training_of_each_kind_ends_bit_for_bit(untrained, tmp_path, monkeypatch, changes):
    monkeypatch.setenv("BLEUPRINT_EMULATE", "1")
    job = job_in(fresh(untrained, tmp_path), monkeypatch)
    settings = dataclasses.replace(job.system.train, **changes)
    system = dataclasses.replace(job.system, train=settings, average=Average(last=1))
    job = dataclasses.replace(job, system=system)
    for name in ("whole", "killed"):
        if name == "killed":
            with pytest.raises(KeyboardInterrupt):
                train_here(job, tmp_path / name, Killed())
        work, state, fingerprints = train_here(job, tmp_path / name)
        assert state.update == 50
        export_checkpoints(job, work, fingerprints, tmp_path / f"{name}-models")
    exported = [folder_sha256(tmp_path / f"{name}-models") for name in ("whole", "killed")]
    assert exported[0] == exported[1]
    files = [path.name for path in (tmp_path / "whole-models").glob("*.ema.safetensors")]
    assert files == (["0000050.ema.safetensors"] if "ema" in changes else [])


def test_a_training_that_patience_ends_says_so_and_keeps_why(untrained, tmp_path):
    # with a learning rate of 0, no validation is better than the first
    constant = LrSchedule(constant=Constant(lr=0.0))
    root = fresh(untrained, tmp_path)
    write_params(root, patience=2, validate_interval=10, lr_schedule=constant, max_updates=50)
    said = train(root)
    facts = TrainingFacts.read(root / RESULTS / "training.json")
    assert facts.updates == 30
    ended = facts.early_end
    assert (ended.update, ended.most_updates, ended.best_update) == (30, 50, 10)
    assert (ended.metric, ended.validations) == ("loss", 2)
    assert str(ended) in said
    assert f"best {facts.valid_loss:.3f} at update 10" in str(ended)


def test_a_complete_training_keeps_no_early_end(untrained, tmp_path):
    root = fresh(untrained, tmp_path)
    write_params(root, patience=9, max_updates=20)
    said = train(root)
    path = root / RESULTS / "training.json"
    assert "ended at update" not in said
    assert "early_end" not in read_json(path)
