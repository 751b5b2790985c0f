"""Forecasts of trainings, against the trainings."""

from pathlib import Path

import pytest
import torch

from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.pipeline import forecast as module
from bleuprint.pipeline.forecast import forecast
from bleuprint.runtime.files import read_object
from bleuprint.tracking.energy import joules

CELL = Cell("tiny", "own", 1)


@pytest.fixture
def project(reproduced, monkeypatch):
    """A project that is trained; the probe is short."""
    monkeypatch.chdir(reproduced.root)
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    monkeypatch.setattr(module, "_start", lambda: 100.0)
    return reproduced


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.safetensors"))


@pytest.mark.usefixtures("project")
def test_a_training_to_come_is_counted_and_measured():
    training = read_object(CELL.results / "training.json", ("flops", "updates"))
    (work,) = Path("work/trainings").glob("tiny.own.1.*")
    disk = size(work) + size(CELL.models)
    done = forecast(load(), CELL)
    assert (done.done, done.updates, done.seconds) == (60, 60, 100.0)
    anew = forecast(load(), CELL, anew=True)  # as bleuprint rules trains
    assert (anew.done, anew.updates) == (0, 60) and (anew.seconds or 0) > 100

    for folder in Path("work/trainings").glob("*own*"):
        folder.rename(folder.with_name(f"else.{folder.suffix}x"))
    made = forecast(load(), CELL)
    assert (made.done, made.updates, made.prepared) == (0, 60, True)
    assert made.flops == pytest.approx(training["flops"] / 60, rel=0.1)
    assert made.disk == pytest.approx(disk, rel=0.05)
    assert made.seconds is not None and 100 < made.seconds < 160


def test_updates_of_epochs_are_those_of_the_corpus(project):
    project.edit(
        "params.yaml", "      max_updates: 60\n", "      max_updates: 99\n      max_epochs: 2\n"
    )
    counted = forecast(load(), CELL).updates
    project.run("python", "stages/train.py", *map(str, CELL))
    assert counted == read_object(CELL.results / "training.json", ("updates",))["updates"] < 99


def test_an_unprepared_corpus_is_probed_with_random_tokens(project):
    (project.root / "data/binary").rename(project.root / "data/gone")
    made = forecast(load(), CELL)
    assert (made.updates, made.prepared, made.done) == (60, False, 0)
    assert made.seconds is not None and made.flops > 0
    project.edit("params.yaml", "      max_updates: 60\n", "      max_epochs: 2\n")
    made = forecast(load(), CELL)
    assert made.updates is made.seconds is made.joules is None


def test_energy_is_that_of_all_packages(tmp_path):
    cpu = torch.device("cpu")
    assert joules(cpu, tmp_path) is None
    for name, text in (
        ("intel-rapl:0", "5000000"),
        ("intel-rapl:0:0", "4000000"),
        ("intel-rapl:1", "2500000"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(f"{text}\n")
    assert joules(cpu, tmp_path) == 7.5
    (tmp_path / "intel-rapl:1/energy_uj").unlink()
    assert joules(cpu, tmp_path) is None
