"""Durations of stages, by a clock that nobody sets."""

import time

import psutil
import pytest

from bleuprint.pipeline import stage_args


def test_the_age_of_a_process_does_not_depend_on_the_time_of_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """psutil's start of the process is a time of day."""
    expected = time.time() - psutil.Process().create_time()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert stage_args._age() == pytest.approx(expected, abs=5)
