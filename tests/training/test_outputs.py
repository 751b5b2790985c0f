"""The outputs of a training: its kept checkpoints, and the results of its validations."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import systems
from bleuprint.config.paths import Run
from bleuprint.model.weights import write_description
from bleuprint.runtime.errors import UserError
from bleuprint.training import checkpoint
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.outputs import export_checkpoints
from corpora import PAIRS
from prepared import prepare

FINGERPRINTS = Fingerprints("settings", "code", "data")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Make a small binarized corpus."""
    return prepare(tmp_path_factory.mktemp("corpus"), {"train": PAIRS}).binary


def job_on(corpus, **train_settings):
    """Return a training on a corpus, with these changes of its settings."""
    system = dataclasses.replace(systems.SYSTEM, train=systems.train(**train_settings))
    return Job(Run("micro", "toy", 1), system, corpus.folder, Path("texts"), "code")


def save_checkpoints(work, updates, validations=()):
    """Save checkpoints of a training, each with the validations up to its update.

    Args:
        work: The folder of the training.
        updates: The updates after which checkpoints are saved.
        validations: The results of the validations, which have the field `update`.
    """
    for update in updates:
        validations_so_far = []
        for validation in validations:
            if validation["update"] <= update:
                validations_so_far.append(validation)
        checkpoint.save(
            work,
            update,
            {"a": torch.full((2,), float(update)), "b": torch.ones(1)},
            {"step": torch.tensor(1.0)},
            {"fingerprint": FINGERPRINTS.combined, "validations": validations_so_far},
        )


@pytest.fixture
def output(tmp_path):
    """The folder to which checkpoints are exported."""
    return tmp_path / "checkpoints"


def test_the_weights_of_all_kept_checkpoints_are_exported(tmp_path, output, corpus):
    """Next to the weights are the results of validations and the description of the model."""
    work = tmp_path / "work"
    save_checkpoints(work, updates=[10, 30, 35])

    export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    assert sorted(path.name for path in output.iterdir()) == [
        "0000010.safetensors",
        "0000030.safetensors",
        "0000035.safetensors",
        "checkpoints.json",
        "model.json",
    ]


@pytest.mark.parametrize("update", ["0000010", "0000030", "0000035"])
def test_exported_weights_have_the_bytes_of_the_checkpoint(tmp_path, output, corpus, update):
    work = tmp_path / "work"
    save_checkpoints(work, updates=[10, 30, 35])

    export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    saved_weights = work / f"checkpoint-{update}" / checkpoint.MODEL
    assert (output / f"{update}.safetensors").read_bytes() == saved_weights.read_bytes()


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_exported_checkpoints_have_a_record_of_their_validations(tmp_path, output, corpus, metric):
    """Averaging reads from the record which checkpoints are best."""
    work = tmp_path / "work"
    validations = [
        {"update": 20, "loss": 0.1 + 0.2, "bleu": 7.5},  # 0.30000000000000004 must stay exact
        {"update": 35, "loss": 0.25, "bleu": 7.0},
    ]
    save_checkpoints(work, updates=[10, 30, 35], validations=validations)

    export_checkpoints(job_on(corpus, validation_metric=metric), work, FINGERPRINTS, output)

    record = json.loads((output / "checkpoints.json").read_text())
    assert record == {
        "fingerprint": FINGERPRINTS.combined,
        "validation_metric": metric,
        "validations": validations,
    }


def test_exported_checkpoints_have_the_description_of_their_model(output, corpus, tmp_path):
    """From the description in model.json, the model is built before its weights are loaded."""
    work = tmp_path / "work"
    save_checkpoints(work, updates=[10])
    job = job_on(corpus)
    write_description(tmp_path, job.system.model, corpus, FINGERPRINTS.combined)

    export_checkpoints(job, work, FINGERPRINTS, output)

    assert (output / "model.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize("name", [checkpoint.MODEL, checkpoint.STATE])
def test_the_export_of_a_damaged_checkpoint_is_an_error(tmp_path, output, corpus, name):
    """One byte of the first of three checkpoints has changed, so its SHA-256 differs."""
    work = tmp_path / "work"
    save_checkpoints(work, updates=[10, 30, 35])
    damaged_file = work / "checkpoint-0000010" / name
    content = damaged_file.read_bytes()
    damaged_file.write_bytes(content.replace(b"b", b"c", 1))

    with pytest.raises(UserError) as raised:
        export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    assert str(raised.value) == (
        f"{damaged_file.parent} is damaged ({name} does not match sha256.json). "
        f"Remove it, or remove {work} to train again"
    )
    assert not output.exists()


def data_fingerprint(root, sets):
    """Prepare a text, and return the fingerprint of what a training reads of it."""
    prepared = prepare(root, sets)
    job = dataclasses.replace(job_on(prepared.binary), split_folder=prepared.text("split").path)
    return Fingerprints.from_job(job).data


def test_a_new_test_set_keeps_the_data_fingerprint_of_a_training(tmp_path):
    """A training reads no test set, so adding one must not repeat it."""
    sets = {"train": PAIRS[:-4], "valid": PAIRS[-4:-2], "test.x": PAIRS[-2:-1]}
    fingerprint = data_fingerprint(tmp_path / "one", sets)

    sets["test.y"] = PAIRS[-1:]
    with_new_test_set = data_fingerprint(tmp_path / "two", sets)

    assert with_new_test_set == fingerprint


def test_another_validation_set_changes_the_data_fingerprint_of_a_training(tmp_path):
    """The validation set decides which checkpoints are best, so the training is repeated."""
    sets = {"train": PAIRS[:-4], "valid": PAIRS[-4:-2], "test.x": PAIRS[-2:-1]}
    fingerprint = data_fingerprint(tmp_path / "one", sets)

    sets["valid"] = PAIRS[-4:-3]  # one pair instead of two
    with_shorter_validation_set = data_fingerprint(tmp_path / "two", sets)

    assert with_shorter_validation_set != fingerprint


def test_the_exported_moving_average_is_corrected_for_its_start_at_zero(tmp_path, output, corpus):
    """It is divided by 1 - decay^updates, as Adam's moments (Kingma and Ba 2015, section 3).

    The checkpoint of update 3 contains the moving average without this correction, as `ema.`.
    """
    work = tmp_path / "work"
    weights = {"a": torch.full((2,), 3.0), "b": torch.ones(1)}
    optimizer_state = {
        "step": torch.tensor(3.0),
        "ema.a": torch.full((2,), 0.7),
        "ema.b": torch.ones(1),
    }
    state = {"fingerprint": FINGERPRINTS.combined, "validations": []}
    checkpoint.save(work, 3, weights, optimizer_state, state)

    export_checkpoints(job_on(corpus, ema=0.5), work, FINGERPRINTS, output)

    averages = load_file(output / "0000003.ema.safetensors")
    correction = 1 - 0.5**3
    assert averages["a"].tolist() == pytest.approx([0.7 / correction, 0.7 / correction])
    assert averages["b"].tolist() == pytest.approx([1 / correction])
