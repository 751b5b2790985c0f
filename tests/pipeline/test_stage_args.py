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
    """params.yaml excludes the system wide from the corpus own.

    dvc.yaml has a stage for each system, corpus and seed, and DVC fails if a stage does not write
    its outputs. So the stages of this run write empty files.
    """
    with pytest.raises(SystemExit) as end:
        begin_stage(kind, "wide", "1")

    success = None  # the exit code of sys.exit() without a number
    assert end.value.code is success
    assert_empty(outputs_of(stages, kind, "wide"))


@pytest.mark.parametrize("kind", ["train", "average"])
def test_the_training_stages_of_an_external_system_write_empty_outputs(begin_stage, stages, kind):
    """The translations of online-a, an external system, are files, so nothing is trained."""
    with pytest.raises(SystemExit):
        begin_stage(kind, "online-a", "1")

    assert_empty(outputs_of(stages, kind, "online-a"))


@pytest.mark.parametrize("kind", ["translate", "score"])
def test_an_external_system_is_scored_with_the_first_seed(begin_stage, kind):
    """Its translations come from a file, whatever the seed is."""
    run = begin_stage(kind, "online-a", "1")

    assert run == Run("online-a", "own", 1)


@pytest.mark.parametrize("kind", ["translate", "score"])
def test_an_external_system_has_empty_outputs_with_other_seeds(begin_stage, stages, kind):
    """params.yaml has the seeds 1 and 2. online-a has one translation, which counts as seed 1."""
    with pytest.raises(SystemExit):
        begin_stage(kind, "online-a", "2")

    assert_empty(outputs_of(stages, kind, "online-a", seed="2"))


@pytest.mark.parametrize("kind", ["train", "translate"])
def test_a_trained_system_runs_with_each_seed(begin_stage, kind):
    assert begin_stage(kind, "tiny", "2") == Run("tiny", "own", 2)


def test_the_duration_of_a_stage_is_right_although_the_clock_was_set_meanwhile(monkeypatch):
    """A stage notes how long its process has run. Here the clock is set to 1970 before its end.

    A difference of two times of day would be negative.
    """
    written_durations = []

    def write_seconds(_file, seconds):
        written_durations.append(seconds)

    monkeypatch.setattr(stage_args, "write_seconds", write_seconds)
    monkeypatch.setattr(sys, "argv", ["stages/clean.py", "own"])
    seconds_since_start = time.time() - psutil.Process().create_time()
    monkeypatch.setattr(time, "time", lambda: 0.0)

    stage_args._write_duration()

    assert written_durations == [pytest.approx(seconds_since_start, abs=5)]


def test_the_duration_of_a_training_is_left_to_the_training(monkeypatch):
    """At its end, each stage writes how long it took, except `train`, which does so itself.

    A training may have several processes, and each of them would write another duration.
    """
    written_durations = []

    def write_seconds(_file, seconds):
        written_durations.append(seconds)

    monkeypatch.setattr(stage_args, "write_seconds", write_seconds)
    monkeypatch.setattr(sys, "argv", ["stages/train.py", "tiny", "own", "1"])

    stage_args._write_duration()

    assert written_durations == []
