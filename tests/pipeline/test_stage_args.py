"""What every script in stages/ does with its arguments."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import micro
from bleuprint.config.paths import Run
from bleuprint.pipeline import stage_args
from params import read


@pytest.fixture
def start(project, tmp_path, monkeypatch):
    """A function that starts a stage on `own`; wide is not trained there, online-a is external."""
    root = project.copy(tmp_path / "project").root
    text = f"{micro.PARAMS.replace('seeds: [1]', 'seeds: [1, 2]')}{micro.EXTERNAL}"
    settings = read(tmp_path, text)
    left_out = replace(settings, runs={**settings.runs, "wide": {"own": None}})
    monkeypatch.chdir(root)
    monkeypatch.setattr(stage_args, "load_resolved_settings", lambda: left_out)
    monkeypatch.setattr(stage_args, "AT_SUCCESS", [])

    def started(kind, system, seed):
        monkeypatch.setattr(sys, "argv", [f"stages/{kind}.py", system, "own", seed])
        is_of_training = kind in ("train", "average")
        named = stage_args.parse_trained_run if is_of_training else stage_args.parse_scored_run
        return named(None)

    return started


def outputs_of(stages, kind, system, seed="1"):
    """The outputs that dvc.yaml names for a system and a seed."""
    paths = stages[f"{kind}@tiny-own-1"].outputs
    return [path.replace("/tiny/own/1/", f"/{system}/own/{seed}/") for path in paths]


def assert_empty(outputs):
    assert outputs
    for output in outputs:
        path = Path(output)
        file = path / "empty" if path.is_dir() else path
        assert file.read_text() == "{}\n"


@pytest.mark.parametrize("kind", ["train", "average", "translate", "score"])
def test_a_run_that_is_left_out_has_empty_outputs(start, stages, kind):
    """DVC's matrix has no exclusions: the stage must write what dvc.yaml names."""
    with pytest.raises(SystemExit) as ended:
        start(kind, "wide", "1")
    assert ended.value.code is None
    assert_empty(outputs_of(stages, kind, "wide"))


@pytest.mark.parametrize("kind", ["train", "average"])
def test_an_external_system_is_not_trained(start, stages, kind):
    with pytest.raises(SystemExit):
        start(kind, "online-a", "1")
    assert_empty(outputs_of(stages, kind, "online-a"))


@pytest.mark.parametrize("kind", ["translate", "score"])
def test_an_external_system_is_scored_with_the_first_seed_alone(start, stages, kind):
    assert start(kind, "online-a", "1") == Run("online-a", "own", 1)
    with pytest.raises(SystemExit):
        start(kind, "online-a", "2")
    assert_empty(outputs_of(stages, kind, "online-a", seed="2"))


def test_a_trained_run_is_run_with_each_seed(start):
    for kind in ("train", "translate"):
        assert start(kind, "tiny", "2") == Run("tiny", "own", 2)


def test_the_duration_of_a_stage_does_not_depend_on_the_time_of_day(monkeypatch):
    """A clock that is set while a stage runs would give it hours, or less than nothing."""
    written = []
    expected = time.time() - psutil.Process().create_time()
    monkeypatch.setattr(stage_args, "write_seconds", lambda _, seconds: written.append(seconds))
    monkeypatch.setattr(sys, "argv", ["stages/clean.py", "own"])
    monkeypatch.setattr(time, "time", lambda: 0.0)
    stage_args._write_duration()
    assert written == [pytest.approx(expected, abs=5)]


def test_a_training_records_its_own_duration(monkeypatch):
    """It may have several processes, which would each write one."""
    monkeypatch.setattr(stage_args, "write_seconds", lambda *_: pytest.fail("is written"))
    monkeypatch.setattr(sys, "argv", ["stages/train.py", "tiny", "own", "1"])
    stage_args._write_duration()
