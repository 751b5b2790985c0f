"""Durations of stages and trainings are found again by their runs, the newest one first."""

import os
from pathlib import Path

import pytest

from bleuprint.config.paths import Run
from bleuprint.tracking.timings import (
    last_stage_seconds_with_any_seed,
    last_training_seconds,
    last_training_seconds_with_any_seed,
    read_seconds,
    read_training_cost,
    stage_seconds_file,
    training_cost_file,
    write_seconds,
)

RUN = Run("small", "news", 1)
SHA256 = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, seconds, modified):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_seconds(path, seconds)
    os.utime(path, (modified, modified))


def test_the_file_of_a_training_and_of_a_stage():
    assert training_cost_file(RUN, SHA256) == Path(
        "timings/small/news/1/train-0123456789abcdef.json"
    )
    command = ["stages/average.py", "small", "news", "1"]
    assert stage_seconds_file(command) == Path("timings/stages/average@small@news@1.json")


def test_a_duration_is_read_back_in_milliseconds():
    path = Path("durations.json")
    assert read_seconds(path) is None
    write_seconds(path, 1.23456)
    assert read_seconds(path) == 1.235


def test_the_newest_training_of_a_run_counts():
    assert last_training_seconds(RUN) is None
    write(training_cost_file(RUN, "a" * 64), 10.0, modified=2000)
    write(training_cost_file(RUN, "b" * 64), 20.0, modified=1000)
    write(training_cost_file(Run("small", "news", 2), "c" * 64), 30.0, modified=3000)
    write(training_cost_file(Run("small", "other", 1), "d" * 64), 40.0, modified=4000)
    write(RUN.timings_folder / "translate-x.json", 50.0, modified=5000)
    assert last_training_seconds(RUN) == 10.0
    assert last_training_seconds_with_any_seed(RUN) == 30.0
    assert last_training_seconds_with_any_seed(Run("small", "news", 9)) == 30.0
    assert last_training_seconds_with_any_seed(Run("large", "news", 1)) is None


def test_the_newest_stage_with_any_seed_counts():
    command = ["stages/average.py", "small", "news", "3"]
    assert last_stage_seconds_with_any_seed(command) is None
    write(stage_seconds_file([*command[:3], "1"]), 10.0, modified=1000)
    write(stage_seconds_file([*command[:3], "2"]), 20.0, modified=2000)
    write(stage_seconds_file(["stages/average.py", "small", "other", "1"]), 30.0, modified=3000)
    write(stage_seconds_file(["stages/average.py", "large", "news", "1"]), 40.0, modified=4000)
    write(stage_seconds_file(["stages/score.py", "small", "news", "1"]), 50.0, modified=5000)
    assert last_stage_seconds_with_any_seed(command) == 20.0


def test_a_training_that_was_not_measured_here_is_unknown():
    assert read_training_cost(RUN, SHA256) is None
