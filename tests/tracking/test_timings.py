"""Files with the durations of stages and trainings: the newest one that fits is found."""

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
    """Make an empty project the working folder."""
    monkeypatch.chdir(tmp_path)


def write_duration(path, seconds, modified):
    """Write a file with a duration.

    Args:
        path: The file.
        seconds: The duration.
        modified: When the file was last changed, in seconds; a larger number is newer.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_seconds(path, seconds)
    os.utime(path, (modified, modified))


def test_the_timing_file_of_a_training_is_named_after_its_fingerprint():
    expected_path = Path("timings/small/news/1/train-0123456789abcdef.json")

    assert training_cost_file(RUN, SHA256) == expected_path


def test_the_timing_file_of_a_stage_is_named_after_its_command():
    command = ["stages/average.py", "small", "news", "1"]

    assert stage_seconds_file(command) == Path("timings/stages/average@small@news@1.json")


def test_a_duration_that_was_not_measured_is_unknown():
    assert read_seconds(Path("durations.json")) is None


def test_a_duration_is_rounded_to_milliseconds():
    path = Path("durations.json")

    write_seconds(path, 1.23456)

    assert read_seconds(path) == 1.235


def test_the_duration_of_a_run_that_was_not_trained_is_unknown():
    assert last_training_seconds(RUN) is None


def write_training_durations():
    """Write durations of two trainings of RUN, and newer ones of another seed, corpus and stage."""
    newer_of_run = training_cost_file(RUN, "a" * 64)
    older_of_run = training_cost_file(RUN, "b" * 64)
    another_seed = training_cost_file(Run("small", "news", 2), "c" * 64)
    another_corpus = training_cost_file(Run("small", "other", 1), "d" * 64)
    another_stage = RUN.timings_folder / "translate-x.json"
    write_duration(newer_of_run, 10.0, modified=2000)
    write_duration(older_of_run, 20.0, modified=1000)
    write_duration(another_seed, 30.0, modified=3000)
    write_duration(another_corpus, 40.0, modified=4000)
    write_duration(another_stage, 50.0, modified=5000)


def test_the_duration_of_a_run_is_that_of_its_newest_training():
    write_training_durations()

    assert last_training_seconds(RUN) == 10.0


@pytest.mark.parametrize("seed", [1, 9])
def test_the_duration_with_any_seed_is_that_of_the_newest_training_of_any_seed(seed):
    """Seed 9 was never trained; its duration can be estimated from another seed."""
    write_training_durations()

    assert last_training_seconds_with_any_seed(Run("small", "news", seed)) == 30.0


def test_the_duration_of_a_system_that_was_never_trained_is_unknown():
    write_training_durations()

    assert last_training_seconds_with_any_seed(Run("large", "news", 1)) is None


def test_the_duration_of_a_stage_that_was_not_run_is_unknown():
    command = ["stages/average.py", "small", "news", "3"]

    assert last_stage_seconds_with_any_seed(command) is None


def test_the_duration_of_a_stage_is_that_of_its_newest_run_with_any_seed():
    """The forecast for a new seed uses the time of the same stage, system and corpus before.

    Seed 2, with 20 seconds, is newer than seed 1. The other records are still newer, but belong to
    another corpus, another system and another stage.
    """
    durations = [
        (["stages/average.py", "small", "news", "1"], 10.0, 1000),
        (["stages/average.py", "small", "news", "2"], 20.0, 2000),
        (["stages/average.py", "small", "other", "1"], 30.0, 3000),
        (["stages/average.py", "large", "news", "1"], 40.0, 4000),
        (["stages/score.py", "small", "news", "1"], 50.0, 5000),
    ]
    for command, seconds, modified in durations:
        write_duration(stage_seconds_file(command), seconds, modified)

    seconds = last_stage_seconds_with_any_seed(["stages/average.py", "small", "news", "3"])

    assert seconds == 20.0


def test_the_cost_of_a_training_that_was_not_measured_here_is_unknown():
    assert read_training_cost(RUN, SHA256) is None
