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
VALIDATIONS = [
    {"update": 20, "loss": 0.1 + 0.2, "bleu": 7.5},
    {"update": 35, "loss": 0.25, "bleu": 7.0},
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Make a small binarized corpus."""
    return prepare(tmp_path_factory.mktemp("corpus"), {"train": PAIRS}).binary


def job_on(corpus, **train_settings):
    """Return a training on a corpus, with these changes of its settings."""
    system = dataclasses.replace(systems.SYSTEM, train=systems.train(**train_settings))
    return Job(Run("micro", "toy", 1), system, corpus.folder, Path("texts"), "code")


@pytest.fixture
def work(tmp_path):
    """Make the work folder of a training that ended at update 35, with three checkpoints."""
    folder = tmp_path / "work"
    for update in (10, 30, 35):
        validations_so_far = [
            validation for validation in VALIDATIONS if validation["update"] <= update
        ]
        checkpoint.save(
            folder,
            update,
            {"a": torch.full((2,), float(update)), "b": torch.ones(1)},
            {"step": torch.tensor(1.0)},
            {"fingerprint": FINGERPRINTS.combined, "validations": validations_so_far},
        )
    return folder


@pytest.fixture
def output(tmp_path):
    """The folder to which checkpoints are exported."""
    return tmp_path / "checkpoints"


def test_the_weights_of_all_kept_checkpoints_are_exported(work, output, corpus):
    export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    assert sorted(path.name for path in output.iterdir()) == [
        "0000010.safetensors",
        "0000030.safetensors",
        "0000035.safetensors",
        "checkpoints.json",
        "model.json",
    ]


@pytest.mark.parametrize("update", ["0000010", "0000030", "0000035"])
def test_exported_weights_have_the_bytes_of_the_checkpoint(work, output, corpus, update):
    export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    saved_weights = work / f"checkpoint-{update}" / checkpoint.MODEL
    assert (output / f"{update}.safetensors").read_bytes() == saved_weights.read_bytes()


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_exported_checkpoints_have_a_record_of_their_validations(work, output, corpus, metric):
    export_checkpoints(job_on(corpus, validation_metric=metric), work, FINGERPRINTS, output)

    assert json.loads((output / "checkpoints.json").read_text()) == {
        "fingerprint": FINGERPRINTS.combined,
        "validation_metric": metric,
        "validations": VALIDATIONS,
    }


def test_exported_checkpoints_have_the_description_of_their_model(work, output, corpus, tmp_path):
    job = job_on(corpus)
    write_description(tmp_path, job.system.model, corpus, FINGERPRINTS.combined)

    export_checkpoints(job, work, FINGERPRINTS, output)

    assert (output / "model.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize("name", [checkpoint.MODEL, checkpoint.STATE])
def test_a_damaged_checkpoint_is_not_exported(work, output, corpus, name):
    damaged_file = work / "checkpoint-0000010" / name
    content = damaged_file.read_bytes()
    damaged_file.write_bytes(content.replace(b"b", b"c", 1))

    with pytest.raises(UserError) as raised:
        export_checkpoints(job_on(corpus), work, FINGERPRINTS, output)

    assert str(raised.value) == (
        f"{damaged_file.parent} is damaged ({name} does not match sha256.json): "
        f"remove it, or remove {work} to train again"
    )
    assert not output.exists()


def data_fingerprint(root, sets):
    """Prepare a text and return the fingerprint of the data by which its training is found."""
    prepared = prepare(root, sets)
    job = dataclasses.replace(job_on(prepared.binary), split_folder=prepared.text("split").path)
    return Fingerprints.from_job(job).data


# A training is found again by this fingerprint, and then not repeated.
SETS = {"train": PAIRS[:-4], "valid": PAIRS[-4:-2], "test.x": PAIRS[-2:-1]}


def test_another_test_set_does_not_change_the_data_fingerprint_of_a_training(tmp_path):
    fingerprint = data_fingerprint(tmp_path / "one", SETS)

    with_new_test_set = data_fingerprint(tmp_path / "two", {**SETS, "test.y": PAIRS[-1:]})

    assert with_new_test_set == fingerprint


def test_another_validation_set_changes_the_data_fingerprint_of_a_training(tmp_path):
    fingerprint = data_fingerprint(tmp_path / "one", SETS)

    with_shorter_validation_set = data_fingerprint(
        tmp_path / "two", {**SETS, "valid": PAIRS[-4:-3]}
    )

    assert with_shorter_validation_set != fingerprint


def test_the_exported_moving_average_is_corrected_for_its_start_at_zero(tmp_path, output, corpus):
    """It is divided by 1 - decay^updates, as Adam's moments (Kingma and Ba 2015, section 3)."""
    work = tmp_path / "work"
    weights = {"a": torch.full((2,), 3.0), "b": torch.ones(1)}
    optimizer_state = {
        "step": torch.tensor(3.0),
        "ema.a": torch.full((2,), 0.7),
        "ema.b": torch.ones(1),
    }
    state = {"fingerprint": FINGERPRINTS.combined, "validations": VALIDATIONS}
    checkpoint.save(work, 3, weights, optimizer_state, state)

    export_checkpoints(job_on(corpus, ema=0.5), work, FINGERPRINTS, output)

    averages = load_file(output / "0000003.ema.safetensors")
    correction = 1 - 0.5**3
    assert averages["a"].tolist() == pytest.approx([0.7 / correction, 0.7 / correction])
    assert averages["b"].tolist() == pytest.approx([1 / correction])
