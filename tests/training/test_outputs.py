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

MARKS = Fingerprints("settings", "code", "data")
VALIDATIONS = [
    {"update": 20, "loss": 0.1 + 0.2, "bleu": 7.5},
    {"update": 35, "loss": 0.25, "bleu": 7.0},
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("corpus"), {"train": PAIRS}).binary


def job_on(corpus, **train):
    system = dataclasses.replace(systems.SYSTEM, train=systems.train(**train))
    return Job(Run("micro", "toy", 1), system, corpus.folder, Path("texts"), "code")


def trained(folder):
    """What is left in the work folder of a training that ended at update 35."""
    for update in (10, 30, 35):
        checkpoint.save(
            folder,
            update,
            {"a": torch.full((2,), float(update)), "b": torch.ones(1)},
            {"step": torch.tensor(1.0)},
            {
                "fingerprint": MARKS.combined,
                "validations": [one for one in VALIDATIONS if one["update"] <= update],
            },
        )
    return folder


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_all_that_remain_are_exported_with_their_record(tmp_path, corpus, metric):
    job, work = job_on(corpus, validation_metric=metric), trained(tmp_path / "work")
    output = tmp_path / "checkpoints"
    export_checkpoints(job, work, MARKS, output)
    names = ["0000010.safetensors", "0000030.safetensors", "0000035.safetensors"]
    found = sorted(path.name for path in output.iterdir())
    assert found == [*names, "checkpoints.json", "model.json"]
    for name in names:
        saved = work / f"checkpoint-{name.partition('.')[0]}" / checkpoint.MODEL
        assert (output / name).read_bytes() == saved.read_bytes()
    record = {
        "fingerprint": MARKS.combined,
        "validation_metric": metric,
        "validations": VALIDATIONS,
    }
    assert json.loads((output / "checkpoints.json").read_text()) == record
    write_description(tmp_path, job.system.model, corpus, MARKS.combined)
    assert (output / "model.json").read_bytes() == (tmp_path / "model.json").read_bytes()


@pytest.mark.parametrize("name", [checkpoint.MODEL, checkpoint.STATE])
def test_a_damaged_checkpoint_is_not_exported(tmp_path, corpus, name):
    work = trained(tmp_path / "work")
    path = work / "checkpoint-0000010" / name
    path.write_bytes(path.read_bytes().replace(b"b", b"c", 1))
    with pytest.raises(UserError) as raised:
        export_checkpoints(job_on(corpus), work, MARKS, tmp_path / "checkpoints")
    assert str(raised.value) == (
        f"{path.parent} is damaged ({name} does not match sha256.json): "
        f"remove it, or remove {work} to train again"
    )
    assert not (tmp_path / "checkpoints").exists()


def test_another_test_set_is_no_other_training(tmp_path):
    """A finished training is found in work/, where text to train on and to validate is the same."""
    pairs = PAIRS[:-4]
    sets = {"train": pairs, "valid": PAIRS[-4:-2], "test.x": PAIRS[-2:-1]}
    marks = []
    for number, more in enumerate([{}, {"test.y": PAIRS[-1:]}, {"valid": PAIRS[-4:-3]}]):
        made = prepare(tmp_path / str(number), {**sets, **more})
        job = dataclasses.replace(job_on(made.binary), split_folder=made.text("split").path)
        marks.append(Fingerprints.from_job(job).data)
    assert marks[0] == marks[1] != marks[2]


def test_the_moving_average_of_the_last_checkpoint_is_exported(tmp_path, corpus):
    """Divided by the sum of its weightings, 1 - decay^updates (Kingma and Ba 2015, section 3)."""
    work, output = tmp_path / "work", tmp_path / "checkpoints"
    weights = {"a": torch.full((2,), 3.0), "b": torch.ones(1)}
    optimizer = {"step": torch.tensor(3.0), "ema.a": torch.full((2,), 0.7), "ema.b": torch.ones(1)}
    state = {"fingerprint": MARKS.combined, "validations": VALIDATIONS}
    checkpoint.save(work, 3, weights, optimizer, state)
    export_checkpoints(job_on(corpus, ema=0.5), work, MARKS, output)
    averaged = load_file(output / "0000003.ema.safetensors")
    assert averaged["a"].tolist() == pytest.approx([0.8, 0.8])  # 0.7 / (1 - 1/8)
    assert averaged["b"].tolist() == pytest.approx([8 / 7])
