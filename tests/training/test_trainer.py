"""Training: learns, repeats and resumes bit for bit, equally on any number of processes."""

import dataclasses
import json
import random
import re
import signal
import time
from pathlib import Path

import pytest
import torch

import systems
from bleuprint.config.system import Average, System
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.batching import Position, plan_updates
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.model.weights import load_model
from bleuprint.runtime.files import read_json
from bleuprint.scoring.comet import folder_sha256
from bleuprint.training.averaging import average_checkpoints
from bleuprint.training.data_loader import BatchReader
from bleuprint.training.loss import batch_loss
from bleuprint.training.outputs import export_checkpoints
from trainings import (
    checkpoints,
    fresh,
    job_in,
    merges,
    project,
    start,
    toy_pairs,
    train,
    train_here,
    wait_for_checkpoint,
    write_params,
)

CELL = Path("micro", "toy", "1")
pytestmark = pytest.mark.usefixtures("one_thread")


def facts(root):
    return read_json(root / "results" / CELL / "training.json")


def curves(root):
    return read_json(root / "results" / CELL / "curves.json")


def losses(root):
    return [point["loss"] for point in curves(root)["training"]]


def weights(root):
    return folder_sha256(root / "models" / CELL / "checkpoints")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The toy project after an uninterrupted training on one process."""
    root = project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def test_the_same_settings_give_the_same_bytes(trained, tmp_path):
    again = fresh(trained, tmp_path)
    train(again)
    assert weights(again) == weights(trained)
    assert facts(again) == facts(trained)
    assert curves(again) == curves(trained)


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_processes_give_the_same_losses(trained, tmp_path, processes):
    several = fresh(trained, tmp_path)
    train(several, processes)
    assert losses(several) == pytest.approx(losses(trained), rel=1e-4)
    for name in ("updates", "source_tokens", "target_tokens", "flops", "fingerprint"):
        assert facts(several)[name] == facts(trained)[name]
    for name, off in (("loss", 1e-3), ("bleu", 1.0)):
        ours, theirs = ([v[name] for v in curves(r)["validation"]] for r in (several, trained))
        assert ours == pytest.approx(theirs, abs=off)
    (path,) = (several / "timings" / CELL).glob("train-*.json")
    assert json.loads(path.read_text())["processes"] == processes


def test_killed_again_and_again_it_ends_with_the_same_weights(trained, tmp_path):
    roots = [fresh(trained, tmp_path / name) for name in ("whole", "killed")]
    for root in roots:
        write_params(root, max_updates=130)
    train(roots[0])
    rng, root = random.Random(7), roots[1]
    for least in (20, 60):
        process = start(root)
        wait_for_update(root, least)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    assert "continuing from update" in train(root)
    for of in (weights, facts, curves):
        assert of(root) == of(roots[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_next_run_continues(trained, tmp_path, number):
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    while process.poll() is None:  # clusters repeat the signal
        process.send_signal(number)
        time.sleep(0.002)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 75, said
    stopped = r"bleuprint: note: train \S+ \S+, seed \d+: stopped by SIGTERM: saved at update \d+; "
    assert len(re.findall(stopped, said)) == said.count("stopped by") == 1
    assert "interrupted" not in said
    assert not (root / "models").exists()
    assert "continuing from update" in train(root)
    assert weights(root) == weights(trained)


@pytest.fixture(scope="module")
def dropped(trained, tmp_path_factory):
    """The toy project after an uninterrupted training with BPE-dropout."""
    root = fresh(trained, tmp_path_factory.mktemp("dropped"))
    write_params(root, bpe_dropout=0.6)
    train(root)
    return root


def test_with_bpe_dropout_more_tokens_are_trained_on(trained, dropped):
    for name in ("source_tokens", "target_tokens", "flops"):
        assert facts(dropped)[name] > 1.1 * facts(trained)[name]
    assert curves(dropped)["training"][-1]["tokens"] == facts(dropped)["target_tokens"]
    assert losses(dropped)[-1] < losses(dropped)[0]


def test_the_loss_is_a_mean_over_the_tokens_that_dropout_made(dropped, tmp_path, monkeypatch):
    job = job_in(fresh(dropped, tmp_path), monkeypatch)
    once = {
        "max_updates": 1,
        "save_interval": 1,
        "keep_last": 1,
        "keep_best": 0,
        "keep_interval": 0,
    }
    settings = dataclasses.replace(job.system.train, bpe_dropout=0.9, **once)
    shape = dataclasses.replace(job.system.model, dropout=systems.NO_DROPOUT)
    job = dataclasses.replace(job, system=System(settings, shape, Average(1), job.system.decode))
    _, state, _ = train_here(job, tmp_path / "work")

    corpus = BinaryCorpus(job.corpus_folder)
    update, _ = next(
        plan_updates(
            *(corpus.side("train", language).lengths for language in ("de", "en")),
            tokens_per_update=settings.tokens_per_update,
            sentences_per_update=None,
            max_tokens=settings.max_tokens,
            seed=1,
            start=Position(),
        )
    )
    torch.manual_seed(1)
    sizes = (len(corpus.segmentation(language).vocabulary) for language in ("de", "en"))
    model = Transformer(shape, *sizes)
    read = BatchReader(corpus, settings, seed=1, max_positions=shape.max_positions)(update.batches)
    batches = [Batch.from_ids(part) for parts in read for part in parts]
    tokens = sum(len(batch.labels) for batch in batches)
    assert tokens > 1.2 * update.tokens
    loss = sum(batch_loss(model, batch, settings.label_smoothing) for batch in batches) / tokens
    assert len(batches) > len(update.batches)
    gradient = torch.autograd.grad(loss, list(model.parameters()))
    norm = torch.cat([part.flatten() for part in gradient]).norm()
    assert state.curve[0]["loss"] == pytest.approx(loss.item(), rel=1e-5)
    assert state.curve[0]["gradient_norm"] == pytest.approx(norm.item(), rel=1e-4)


def wait_for_update(root, least):
    """Until there is a checkpoint of that update or a later one."""
    deadline = time.monotonic() + 60
    while not any(int(path.name.rpartition("-")[2]) >= least for path in checkpoints(root)):
        assert time.monotonic() < deadline, f"no checkpoint of update {least} within a minute"
        time.sleep(0.01)


def test_vocabularies_of_two_sizes_make_a_model_that_reads_back(tmp_path, monkeypatch):
    pairs = [*toy_pairs(600, 1), ("ba be", "QU QU")]  # Q is a letter of the target only
    job = job_in(project(tmp_path, pairs, units=merges(30, joint=False)), monkeypatch)
    work, state, fingerprints = train_here(job, tmp_path / "work")
    export_checkpoints(job, work, fingerprints, tmp_path / "checkpoints")
    average_checkpoints(tmp_path / "checkpoints", Average(last=1), tmp_path / "averaged")
    corpus = BinaryCorpus(job.corpus_folder)
    model = load_model(tmp_path / "averaged", corpus)
    source, target = (len(corpus.segmentation(side).vocabulary) for side in ("de", "en"))
    assert source != target
    assert model.source_embedding.num_embeddings == source
    assert model.projection.out_features == target
    assert count_parameters(model) == state.parameters
    assert state.curve[-1]["loss"] < 0.9 * state.curve[0]["loss"]
