"""Training: learns, repeats and resumes bit for bit, equally on any number of processes."""

import dataclasses
import json
import random
import re
import shutil
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import systems
from bleuprint.config.system import Average, System
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.batching import Position, plan_updates
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.model.weights import load_model
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.comet import folder_sha256
from bleuprint.training.averaging import average_checkpoints
from bleuprint.training.data_loader import BatchReader
from bleuprint.training.loss import batch_loss
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.shared_plans import EpochPlanner
from trainings import (
    bpe_units,
    checkpoints,
    job_in,
    make_project,
    start,
    toy_pairs,
    train,
    train_here,
    untrained_copy,
    wait_for_checkpoint,
    write_params,
)

RUN_FOLDER = Path("micro", "toy", "1")
pytestmark = pytest.mark.usefixtures("one_thread")


def training_facts(root):
    """Read the facts of a training: tokens, operations, scores and fingerprint."""
    return read_json(root / "results" / RUN_FOLDER / "training.json")


def learning_curves(root):
    """Read the curves of a training: the points of its training loss, and its validations."""
    return read_json(root / "results" / RUN_FOLDER / "curves.json")


def training_losses(root):
    """Return the loss of each point of the training curve."""
    return [point["loss"] for point in learning_curves(root)["training"]]


def validation_scores(root, metric):
    """Return the loss or the BLEU score of each validation."""
    return [validation[metric] for validation in learning_curves(root)["validation"]]


def sha256_of_models(root):
    """Return the SHA-256 of the folder of the exported checkpoints."""
    return folder_sha256(root / "models" / RUN_FOLDER / "checkpoints")


def assert_same_results(root, expected_root):
    """Fail unless two trainings have exported the same bytes and recorded the same figures."""
    assert sha256_of_models(root) == sha256_of_models(expected_root)
    assert training_facts(root) == training_facts(expected_root)
    assert learning_curves(root) == learning_curves(expected_root)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train the toy project without interruption in one process. Not to be changed."""
    root = make_project(tmp_path_factory.mktemp("trained"))
    train(root)
    return root


def test_training_twice_with_the_same_settings_gives_the_same_bytes(trained, tmp_path):
    """The toy project has been trained once; a copy without its results is trained again."""
    copy = untrained_copy(trained, tmp_path)

    train(copy)

    assert_same_results(copy, trained)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(2, id="2 processes"),
        pytest.param(3, id="3 processes", marks=pytest.mark.slow),
    ],
)
def trained_by_several(request, trained, tmp_path_factory):
    """Train the toy project in several processes.

    Attributes of what it returns:
        root: The project.
        processes: The number of processes.
    """
    root = untrained_copy(trained, tmp_path_factory.mktemp("several"))
    train(root, processes=request.param)
    return SimpleNamespace(root=root, processes=request.param)


def test_several_processes_give_the_same_losses(trained, trained_by_several):
    losses = training_losses(trained_by_several.root)

    assert losses == pytest.approx(training_losses(trained), rel=1e-4)


@pytest.mark.parametrize(("metric", "tolerance"), [("loss", 1e-3), ("bleu", 1.0)])
def test_several_processes_give_the_same_validation_scores(
    trained, trained_by_several, metric, tolerance
):
    """The toy project is trained in one process and in two or three.

    Processes add gradients in another order, so weights, and some translations, differ slightly.
    """
    expected_scores = validation_scores(trained, metric)

    scores = validation_scores(trained_by_several.root, metric)

    assert scores == pytest.approx(expected_scores, abs=tolerance)


@pytest.mark.parametrize(
    "name", ["updates", "source_tokens", "target_tokens", "flops", "fingerprint"]
)
def test_several_processes_count_the_same_work(trained, trained_by_several, name):
    assert training_facts(trained_by_several.root)[name] == training_facts(trained)[name]


def test_the_timing_record_contains_the_number_of_processes(trained_by_several):
    """The report shows it next to the training time, which depends on it."""
    timings = trained_by_several.root / "timings" / RUN_FOLDER

    (path,) = timings.glob("train-*.json")
    record = json.loads(path.read_text())

    assert record["processes"] == trained_by_several.processes


def wait_for_update(root, update):
    """Wait until there is a checkpoint of an update or of a later one."""
    deadline = time.monotonic() + 60
    while True:
        saved_updates = [int(path.name.rpartition("-")[2]) for path in checkpoints(root)]
        if any(saved_update >= update for saved_update in saved_updates):
            return
        assert time.monotonic() < deadline, f"no checkpoint of update {update} within a minute"
        time.sleep(0.01)


def kill_after_checkpoint(root, update, seconds):
    """Train until there is a checkpoint of an update; a moment later, kill the training."""
    process = start(root)
    wait_for_update(root, update)
    time.sleep(seconds)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_a_training_that_is_killed_twice_ends_with_the_same_results(trained, tmp_path):
    """Two copies of the toy project train for 130 updates; one of them is killed in between."""
    uninterrupted = untrained_copy(trained, tmp_path / "uninterrupted")
    write_params(uninterrupted, max_updates=130)
    train(uninterrupted)
    killed = untrained_copy(trained, tmp_path / "killed")
    write_params(killed, max_updates=130)
    rng = random.Random(7)

    kill_after_checkpoint(killed, update=20, seconds=rng.uniform(0, 0.15))
    kill_after_checkpoint(killed, update=60, seconds=rng.uniform(0, 0.15))
    output = train(killed)

    assert "continuing from update" in output
    assert_same_results(killed, uninterrupted)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(signal.SIGTERM, id="SIGTERM"),
        pytest.param(signal.SIGINT, id="SIGINT"),
    ],
)
def stopped(request, trained, tmp_path_factory):
    """Start a training and stop it by a signal after its first checkpoint.

    The signal is repeated until the training ends, as clusters do.

    Attributes of what it returns:
        root: The project.
        output: What the training has printed.
        status: The exit status of the training.
    """
    root = untrained_copy(trained, tmp_path_factory.mktemp("stopped"))
    process = start(root)
    wait_for_checkpoint(root, 0)
    while process.poll() is None:
        process.send_signal(request.param)
        time.sleep(0.002)
    output, _ = process.communicate(timeout=60)
    return SimpleNamespace(root=root, output=output, status=process.returncode)


def test_a_stopped_training_asks_to_be_started_again(stopped):
    status_to_try_again = 75  # EX_TEMPFAIL of sysexits.h

    assert stopped.status == status_to_try_again, stopped.output


def test_a_stopped_training_says_once_that_it_has_saved_its_state(stopped):
    """It got SIGTERM, or SIGINT as by Ctrl-C, several times; both are reported as SIGTERM."""
    note = (
        r"bleuprint: note: train \S+ \S+, seed \d+: stopped by SIGTERM and saved at update \d+\. "
    )

    assert len(re.findall(note, stopped.output)) == 1
    assert stopped.output.count("stopped by") == 1
    assert "interrupted" not in stopped.output


def test_a_stopped_training_exports_no_models(stopped):
    assert not (stopped.root / "models").exists()


def test_a_stopped_training_continues_to_the_same_weights(stopped, trained, tmp_path):
    """A signal ended the training after its first checkpoint; the reference ran to its end."""
    root = shutil.copytree(stopped.root, tmp_path / "continued", symlinks=True)

    output = train(root)

    assert "continuing from update" in output
    assert sha256_of_models(root) == sha256_of_models(trained)


@pytest.fixture(scope="module")
def trained_with_dropout(trained, tmp_path_factory):
    """Train the toy project with BPE-dropout: merges are skipped at random, words get longer."""
    root = untrained_copy(trained, tmp_path_factory.mktemp("dropout"))
    write_params(root, bpe_dropout=0.6)
    train(root)
    return root


@pytest.mark.parametrize("name", ["source_tokens", "target_tokens", "flops"])
def test_with_bpe_dropout_more_tokens_are_trained_on(trained, trained_with_dropout, name):
    assert training_facts(trained_with_dropout)[name] > 1.1 * training_facts(trained)[name]


def test_the_training_curve_counts_the_tokens_of_bpe_dropout(trained_with_dropout):
    last_point = learning_curves(trained_with_dropout)["training"][-1]

    assert last_point["tokens"] == training_facts(trained_with_dropout)["target_tokens"]


def test_with_bpe_dropout_the_loss_falls(trained_with_dropout):
    losses = training_losses(trained_with_dropout)

    assert losses[-1] < losses[0]


def job_of_one_update(root, monkeypatch):
    """Return a training of one update, with much BPE-dropout and without other dropout."""
    job = job_in(root, monkeypatch)
    train_settings = dataclasses.replace(
        job.system.train,
        bpe_dropout=0.9,
        max_updates=1,
        save_interval=1,
        keep_last=1,
        keep_best=0,
        keep_interval=0,
    )
    model = dataclasses.replace(job.system.model, dropout=systems.NO_DROPOUT)
    system = System(train_settings, model, Average(1), job.system.decode)
    return dataclasses.replace(job, system=system)


def first_update_of(corpus, settings):
    """Plan the first update of a training with seed 1."""
    plan = plan_updates(
        EpochPlanner(corpus, settings, seed=1),
        tokens_per_update=settings.tokens_per_update,
        sentences_per_update=None,
        start=Position(),
    )
    update, _ = next(plan)
    return update


def read_batches(corpus, system, update):
    """Read the batches of an update with BPE-dropout, which may divide a batch into several."""
    reader = BatchReader(corpus, system.train, seed=1, max_positions=system.model.max_positions)
    batches = []
    for parts in reader(update.batches):
        for part in parts:
            batches.append(Batch.from_ids(part))
    return batches


@pytest.fixture
def update_with_dropout(trained_with_dropout, tmp_path, monkeypatch):
    """Train for one update with BPE-dropout, and read its batches again.

    Attributes of what it returns:
        corpus: The corpus.
        system: The system.
        planned: The update as planned, without BPE-dropout.
        batches: Its batches, with BPE-dropout.
        curve_point: The point of the training curve after it.
    """
    job = job_of_one_update(untrained_copy(trained_with_dropout, tmp_path), monkeypatch)
    state = train_here(job, tmp_path / "work").state
    corpus = BinaryCorpus(job.corpus_folder)
    update = first_update_of(corpus, job.system.train)
    return SimpleNamespace(
        corpus=corpus,
        system=job.system,
        planned=update,
        batches=read_batches(corpus, job.system, update),
        curve_point=state.curve[0],
    )


def test_bpe_dropout_makes_more_tokens_and_batches_than_planned(update_with_dropout):
    """BPE-dropout skips merges at random, so that words have more tokens than in the plan.

    Batches that become too large are divided.
    """
    planned = update_with_dropout.planned

    tokens = sum(len(batch.labels) for batch in update_with_dropout.batches)

    assert tokens > 1.2 * planned.tokens
    assert len(update_with_dropout.batches) > len(planned.batches)


def test_the_loss_is_the_mean_over_the_tokens_after_bpe_dropout(update_with_dropout):
    """The reference: the first, random weights compute the losses of all batches of the update.

    Their sum is divided by the number of tokens with BPE-dropout, not by the planned number.
    """
    corpus = update_with_dropout.corpus
    system = update_with_dropout.system
    torch.manual_seed(1)  # The seed of the training, which decides its first weights.
    source_size = len(corpus.segmentation("de").vocabulary)
    target_size = len(corpus.segmentation("en").vocabulary)
    model = Transformer(system.model, source_size, target_size)
    total_loss = torch.zeros(())
    tokens = 0
    for batch in update_with_dropout.batches:
        total_loss = total_loss + batch_loss(model, batch, system.train.label_smoothing)
        tokens += len(batch.labels)
    loss = total_loss / tokens
    gradient = torch.autograd.grad(loss, list(model.parameters()))
    gradient_norm = torch.cat([part.flatten() for part in gradient]).norm()

    point = update_with_dropout.curve_point

    assert point["loss"] == pytest.approx(loss.item(), rel=1e-5)
    assert point["gradient_norm"] == pytest.approx(gradient_norm.item(), rel=1e-4)


@pytest.fixture(scope="module")
def two_vocabularies(tmp_path_factory):
    """Train, export and average a model with a vocabulary for each language.

    The letter Q occurs in the target only, so that the vocabularies differ in size.

    Attributes of what it returns:
        state: The state of the training at its end.
        model: The averaged model.
        source_size: The size of the source vocabulary.
        target_size: The size of the target vocabulary.
    """
    root = tmp_path_factory.mktemp("two-vocabularies")
    pairs = [*toy_pairs(600, 1), ("ba be", "QU QU")]
    with pytest.MonkeyPatch.context() as patch:
        job = job_in(make_project(root, pairs, units=bpe_units(30, joint=False)), patch)
        training = train_here(job, root / "work")
        export_checkpoints(job, training.folder, training.fingerprints, root / "checkpoints")
        average_checkpoints(root / "checkpoints", Average(last=1), root / "averaged")
        corpus = BinaryCorpus(job.corpus_folder)
        return SimpleNamespace(
            state=training.state,
            model=load_model(root / "averaged", corpus),
            source_size=len(corpus.segmentation("de").vocabulary),
            target_size=len(corpus.segmentation("en").vocabulary),
        )


def test_embedding_and_projection_have_the_sizes_of_their_vocabularies(two_vocabularies):
    """Each language has its own vocabulary; with equal sizes, a mix-up would stay unnoticed."""
    model = two_vocabularies.model

    assert two_vocabularies.source_size != two_vocabularies.target_size
    assert model.source_embedding.num_embeddings == two_vocabularies.source_size
    assert model.projection.out_features == two_vocabularies.target_size


def test_an_averaged_model_has_as_many_parameters_as_the_training_recorded(two_vocabularies):
    assert count_parameters(two_vocabularies.model) == two_vocabularies.state.parameters


def test_a_model_with_two_vocabularies_learns(two_vocabularies):
    curve = two_vocabularies.state.curve

    assert curve[-1]["loss"] < 0.9 * curve[0]["loss"]
