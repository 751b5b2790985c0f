"""Training: learns, repeats and resumes bit for bit, equally on any number of processes."""

import dataclasses
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import bleuprint.training.data_loader
import systems
from bleuprint.config.optimization import Constant, LrSchedule, Optimizer
from bleuprint.config.system import Average, Keep, System
from bleuprint.dataset.batch import Batch, read_ids
from bleuprint.dataset.batching import Position, plan_epoch, plan_updates
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.model.weights import load_model
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.averaging import average
from bleuprint.training.data_loader import BatchReader
from bleuprint.training.job import Job
from bleuprint.training.loss import batch_loss
from bleuprint.training.observer import Observer
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.train_state import TrainState
from hashes import sha256_of_folder
from processes import run
from trainings import (
    checkpoints,
    environment,
    fresh,
    job_in,
    merges,
    project,
    start,
    toy_pairs,
    train,
    train_here,
    wait_for_checkpoint,
    without_mlflow,
    write_params,
)

CELL = Path("micro", "toy", "1")
ALONE = Group(0, 1, torch.device("cpu"))


def facts(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "results" / CELL / "training.json").read_text())
    return content


def curves(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "results" / CELL / "curves.json").read_text())
    return content


def losses(root: Path) -> list[float]:
    return [point["loss"] for point in curves(root)["training"]]


def weights(root: Path) -> str:
    return sha256_of_folder(root / "models" / CELL / "checkpoints")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Trainings in this process use one thread, like those in other processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy project after an uninterrupted training on one process."""
    root = project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def test_the_same_settings_give_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    again = fresh(trained, tmp_path)
    train(again)
    assert weights(again) == weights(trained)
    assert facts(again) == facts(trained)
    assert curves(again) == curves(trained)


def test_the_command_does_what_the_stage_does(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    command = [sys.executable, "-m", "bleuprint.cli.main", "train", "micro", "toy", "1"]
    run(command, root, {**environment(), **without_mlflow(root)}).check_returncode()
    assert weights(root) == weights(trained)
    assert facts(root) == facts(trained)


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_processes_give_the_same_losses(
    trained: Path, tmp_path: Path, processes: int
) -> None:
    several = fresh(trained, tmp_path)
    train(several, processes)
    assert losses(several) == pytest.approx(losses(trained), rel=1e-4)
    for name in ("updates", "source_tokens", "target_tokens", "flops", "fingerprint"):
        assert facts(several)[name] == facts(trained)[name]
    (path,) = (several / "timings" / CELL).glob("train-*.json")
    timing = json.loads(path.read_text())
    assert timing["processes"] == processes


def test_killed_again_and_again_it_ends_with_the_same_weights(
    trained: Path, tmp_path: Path
) -> None:
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


def test_told_to_stop_it_saves_says_so_and_goes_on(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    while process.poll() is None:  # clusters repeat the signal
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 75, said
    assert "stopped by SIGTERM: saved at update" in said
    assert not (root / "models").exists()
    assert "continuing from update" in train(root)
    assert weights(root) == weights(trained)


@pytest.fixture(scope="module")
def dropped(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy project after an uninterrupted training with BPE-dropout."""
    root = fresh(trained, tmp_path_factory.mktemp("dropped"))
    write_params(root, bpe_dropout=0.6)
    train(root)
    return root


def test_with_bpe_dropout_more_tokens_are_trained_on(trained: Path, dropped: Path) -> None:
    for name in ("source_tokens", "target_tokens", "flops"):
        assert facts(dropped)[name] > 1.1 * facts(trained)[name]
    assert curves(dropped)["training"][-1]["tokens"] == facts(dropped)["target_tokens"]
    assert losses(dropped)[-1] < losses(dropped)[0]


def test_killed_with_bpe_dropout_it_ends_with_the_same_weights(
    dropped: Path, tmp_path: Path
) -> None:
    root = fresh(dropped, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    process.kill()
    process.communicate(timeout=60)
    assert "continuing from update" in train(root)
    assert weights(root) == weights(dropped)
    assert facts(root) == facts(dropped)
    assert curves(root) == curves(dropped)


@pytest.mark.slow
def test_two_processes_drop_the_same_merges(dropped: Path, tmp_path: Path) -> None:
    two = fresh(dropped, tmp_path)
    train(two, 2)
    assert losses(two) == pytest.approx(losses(dropped), rel=1e-4)
    for name in ("source_tokens", "target_tokens", "flops"):
        assert facts(two)[name] == facts(dropped)[name]


@pytest.mark.slow
def test_processes_that_read_ahead_change_nothing(
    dropped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(fresh(dropped, tmp_path), monkeypatch)
    monkeypatch.setattr(bleuprint.training.data_loader, "_num_workers", lambda *_: 2)
    work, _, _ = train_here(job, tmp_path / "work")
    ours = work / "checkpoint-0000050" / "model.safetensors"
    theirs = dropped / "models" / CELL / "checkpoints" / "0000050.safetensors"
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("processes", [1, 2])
def test_sentences_of_an_update_count_as_one_batch_of_them(
    trained: Path, tmp_path: Path, processes: int
) -> None:
    """The first update of 40 pairs, in batches of 70 tokens, against all of them in one batch."""
    root = fresh(trained, tmp_path)
    write_params(
        root,
        tokens_per_update=None,
        sentences_per_update=40,
        max_updates=15,
        checkpoint_every=5,
        validate_every=15,
    )
    params = root / "params.yaml"
    params.write_text(params.read_text().replace("embedding: 0.1", "embedding: 0.0"))
    params.write_text(params.read_text().replace("residual: 0.1", "residual: 0.0"))
    train(root, processes)
    corpus = BinaryCorpus(root / "data" / "binary" / "toy")
    lengths = [corpus.side("train", language).lengths for language in ("de", "en")]
    rows = np.concatenate(plan_epoch(*lengths, 70, seed=1, epoch=0, sentences=40))[:40]
    torch.manual_seed(1)
    size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(), size, size)
    loss = batch_loss(model, Batch.from_ids(read_ids(corpus, "train", rows)), 0.1)
    first = curves(root)["training"][0]
    assert first["tokens"] == lengths[1][rows].sum()
    assert first["loss"] == pytest.approx(loss.item() / first["tokens"], rel=1e-5)
    # the 595 pairs are an epoch of 15 updates
    assert facts(root)["target_tokens"] == lengths[1].sum()


class Killed(Observer):
    """Ends a training at its third checkpoint."""

    saves = 0

    def saved(self, _: TrainState) -> None:
        self.saves += 1
        if self.saves == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "changes",
    [
        {"ema": 0.9},
        {"tokens_per_update": None, "sentences_per_update": 32},
        {"optimizer": Optimizer(name="sgd", momentum=0.9, weight_decay=0.0), "ema": 0.5},
    ],
)
def test_a_killed_training_of_each_kind_ends_bit_for_bit(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    job = with_train(job_in(fresh(trained, tmp_path), monkeypatch), **changes)
    for name in ("whole", "killed"):
        if name == "killed":
            with pytest.raises(KeyboardInterrupt):
                train_here(job, tmp_path / name, Killed())
        work, state, fingerprints = train_here(job, tmp_path / name)
        assert state.update == 50
        export_checkpoints(job, work, fingerprints, tmp_path / f"{name}-models")
    exported = [sha256_of_folder(tmp_path / f"{name}-models") for name in ("whole", "killed")]
    assert exported[0] == exported[1]
    files = [path.name for path in (tmp_path / "whole-models").glob("*.ema.safetensors")]
    assert files == (["0000050.ema.safetensors"] if "ema" in changes else [])


@pytest.mark.parametrize("updates", [1, 6])
def test_the_moving_average_is_that_of_the_checkpoints(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, updates: int
) -> None:
    """Against the checkpoints of all updates, weighted by hand; it changes no weight."""
    plan = {"max_updates": updates, "checkpoint_every": 1, "keep": Keep(last=6, best=0, every=0)}
    job = job_in(fresh(trained, tmp_path), monkeypatch)
    for name, changes in (("with", {"ema": 0.7}), ("without", {})):
        changed = with_train(job, **plan, **changes)
        work, _, fingerprints = train_here(changed, tmp_path / name)
        export_checkpoints(changed, work, fingerprints, tmp_path / f"{name}-models")
    paths = [tmp_path / "with-models" / f"{n:07d}.safetensors" for n in range(1, updates + 1)]
    average(tmp_path / "with-models", Average(ema=True), tmp_path / "averaged")
    averaged = load_file(tmp_path / "averaged" / "model.safetensors")
    shares = [0.7 ** (updates - n) for n in range(1, updates + 1)]
    for name, mean in averaged.items():
        saved = [load_file(path)[name].double() for path in paths]
        by_hand = sum(s * w for s, w in zip(shares, saved, strict=True)) / sum(shares)
        torch.testing.assert_close(mean.double(), by_hand, rtol=1e-5, atol=1e-7)
    for path in paths:
        other = load_file(tmp_path / "without-models" / path.name)
        assert all(torch.equal(weight, other[name]) for name, weight in load_file(path).items())
    load_model(tmp_path / "averaged", BinaryCorpus(job.corpus))


def with_train(job: Job, **changes: Any) -> Job:
    """The job with other settings of training."""
    settings = dataclasses.replace(job.system.train, **changes)
    system = dataclasses.replace(job.system, train=settings, average=Average(last=1))
    return dataclasses.replace(job, system=system)


def test_the_loss_is_a_mean_over_the_tokens_that_dropout_made(
    dropped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(fresh(dropped, tmp_path), monkeypatch)
    once = {"max_updates": 1, "checkpoint_every": 1, "keep": Keep(last=1, best=0, every=0)}
    settings = dataclasses.replace(job.system.train, bpe_dropout=0.9, **once)
    shape = dataclasses.replace(job.system.model, dropout=systems.NO_DROPOUT)
    job = dataclasses.replace(job, system=System(shape, settings, Average(1), job.system.decode))
    _, state, _ = train_here(job, tmp_path / "work")

    corpus = BinaryCorpus(job.corpus)
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


def test_vocabularies_apart_make_a_model_that_reads_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [*toy_pairs(600, 1), ("ba be", "QU QU")]  # Q is of the target alone
    job = job_in(project(tmp_path, pairs, units=merges(30, joint=False)), monkeypatch)
    shape = dataclasses.replace(job.system.model, tie_embeddings="decoder")
    job = dataclasses.replace(job, system=dataclasses.replace(job.system, model=shape))
    work, state, fingerprints = train_here(job, tmp_path / "work")
    export_checkpoints(job, work, fingerprints, tmp_path / "checkpoints")
    average(tmp_path / "checkpoints", Average(2), tmp_path / "averaged")

    corpus = BinaryCorpus(job.corpus)
    assert not corpus.joint
    model = load_model(tmp_path / "averaged", corpus)
    sizes = [len(corpus.segmentation(language).vocabulary) for language in ("de", "en")]
    assert [model.source_embedding.num_embeddings, model.projection.out_features] == sizes
    assert sizes[0] != sizes[1]
    assert count_parameters(model) == state.parameters
    assert state.curve[-1]["loss"] < 0.9 * state.curve[0]["loss"]


def test_a_checkpoint_cut_short_is_refused(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 1)
    process.kill()
    process.communicate(timeout=60)
    newest = checkpoints(root)[-1]
    model = newest / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-100])
    said = train(root)
    assert f"{newest.name} is damaged" in said
    assert weights(root) == weights(trained)


def test_other_settings_start_afresh(trained: Path, tmp_path: Path) -> None:
    root = fresh(trained, tmp_path)
    process = start(root)
    wait_for_checkpoint(root, 0)
    process.kill()
    process.communicate(timeout=60)
    write_params(root, lr_schedule=LrSchedule(constant=Constant(0.004)))
    assert "continuing from" not in train(root)
    assert facts(root)["settings"] != facts(trained)["settings"]
    write_params(root)
    assert "continuing from" in train(root)
    assert weights(root) == weights(trained)


def test_half_precision_learns_as_well(trained: Path, tmp_path: Path) -> None:
    half = fresh(trained, tmp_path)
    write_params(half, precision="bfloat16")
    train(half)
    assert losses(half)[-1] == pytest.approx(losses(trained)[-1], rel=0.05)
    assert losses(half) != losses(trained)


def wait_for_update(root: Path, least: int) -> None:
    """Until there is a checkpoint of that update or a later one."""
    deadline = time.monotonic() + 60
    while not any(int(path.name.rpartition("-")[2]) >= least for path in checkpoints(root)):
        assert time.monotonic() < deadline, f"no checkpoint of update {least} within a minute"
        time.sleep(0.01)
