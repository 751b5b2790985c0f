"""What every script in stages/ does with its arguments, before and after its work."""

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
def begin_stage(project, tmp_path, monkeypatch):
    """Return a function that begins a stage of a run on the corpus own.

    There are three systems: tiny, which is trained, wide, which is excluded from the corpus, and
    online-a, an external system. The seeds are 1 and 2.
    """
    root = project.copy(tmp_path / "project").root
    two_seeds = micro.PARAMS.replace("seeds: [1]", "seeds: [1, 2]")
    settings = read(tmp_path, f"{two_seeds}{micro.EXTERNAL}")
    without_wide = replace(settings, runs={**settings.runs, "wide": {"own": None}})
    monkeypatch.chdir(root)
    monkeypatch.setattr(stage_args, "load_resolved_settings", lambda: without_wide)
    monkeypatch.setattr(stage_args, "AT_SUCCESS", [])

    def begin_stage(kind, system, seed):
        """Return the run that the arguments of a stage name; SystemExit if there is none."""
        monkeypatch.setattr(sys, "argv", [f"stages/{kind}.py", system, "own", seed])
        if kind in ("train", "average"):
            return stage_args.parse_trained_run(None)
        return stage_args.parse_scored_run(None)

    return begin_stage


def outputs_of(stages, kind, system, seed="1"):
    """Return the outputs that dvc.yaml names for a stage of a system, on corpus own with a seed."""
    outputs = stages[f"{kind}@tiny-own-1"].outputs
    return [path.replace("/tiny/own/1/", f"/{system}/own/{seed}/") for path in outputs]


def assert_empty(outputs):
    """Check that there are outputs and that each is an empty JSON object, or a folder with one."""
    assert outputs
    for output in outputs:
        path = Path(output)
        file = path / "empty" if path.is_dir() else path
        assert file.read_text() == "{}\n"


@pytest.mark.parametrize("kind", ["train", "average", "translate", "score"])
def test_the_stages_of_an_excluded_run_write_empty_outputs_and_end(begin_stage, stages, kind):
    """DVC's matrix has no exclusions: the stage must write what dvc.yaml names."""
    with pytest.raises(SystemExit) as end:
        begin_stage(kind, "wide", "1")

    assert end.value.code is None
    assert_empty(outputs_of(stages, kind, "wide"))


@pytest.mark.parametrize("kind", ["train", "average"])
def test_the_training_stages_of_an_external_system_write_empty_outputs(begin_stage, stages, kind):
    with pytest.raises(SystemExit):
        begin_stage(kind, "online-a", "1")

    assert_empty(outputs_of(stages, kind, "online-a"))


@pytest.mark.parametrize("kind", ["translate", "score"])
def test_an_external_system_is_scored_with_the_first_seed(begin_stage, kind):
    """Its translations come from a file, whatever the seed is."""
    assert begin_stage(kind, "online-a", "1") == Run("online-a", "own", 1)


@pytest.mark.parametrize("kind", ["translate", "score"])
def test_an_external_system_has_empty_outputs_with_other_seeds(begin_stage, stages, kind):
    """Its translations come from a file, whatever the seed is."""
    with pytest.raises(SystemExit):
        begin_stage(kind, "online-a", "2")

    assert_empty(outputs_of(stages, kind, "online-a", seed="2"))


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_a_trained_system_runs_with_each_seed(begin_stage, kind):
    assert begin_stage(kind, "tiny", "2") == Run("tiny", "own", 2)


def test_the_duration_of_a_stage_does_not_depend_on_the_time_of_day(monkeypatch):
    """If the clock is set while a stage runs, the difference of two times may be hours, or < 0."""
    durations = []
    monkeypatch.setattr(stage_args, "write_seconds", lambda _, seconds: durations.append(seconds))
    monkeypatch.setattr(sys, "argv", ["stages/clean.py", "own"])
    seconds_since_start = time.time() - psutil.Process().create_time()
    monkeypatch.setattr(time, "time", lambda: 0.0)  # The clock is set to 1970.

    stage_args._write_duration()

    assert durations == [pytest.approx(seconds_since_start, abs=5)]


def test_the_general_duration_of_a_stage_is_not_written_for_a_training(monkeypatch):
    """A training writes its duration itself: each of its processes would write one."""
    monkeypatch.setattr(stage_args, "write_seconds", lambda *_: pytest.fail("is written"))
    monkeypatch.setattr(sys, "argv", ["stages/train.py", "tiny", "own", "1"])

    stage_args._write_duration()
