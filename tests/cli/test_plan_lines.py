"""The lines of `bleuprint plan`: stages of one kind together, reasons once, times if known."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from bleuprint.cli import pipeline
from bleuprint.pipeline import plan, project_lock


def stage(name, why="new", last_seconds=None, last_seconds_with_another_seed=None):
    """Return a planned stage.

    Args:
        name: Its name, such as train@a-1: the stage train of the run a-1.
        why: Why `make reproduce` would run it.
        last_seconds: How long it took when it last ran; None if it never ran here.
        last_seconds_with_another_seed: How long it last took with another seed, or None.
    """
    kind = name.partition("@")[0]
    return SimpleNamespace(
        stage=SimpleNamespace(kind=kind, name=name, parameters={}),
        why=why,
        last_seconds=last_seconds,
        last_seconds_with_another_seed=last_seconds_with_another_seed,
    )


@pytest.fixture
def print_plan(monkeypatch, capsys):
    """Return a function that returns what `bleuprint plan` prints for the given stages."""

    def printed_lines(*stages):
        monkeypatch.setattr(pipeline, "load_settings", lambda: None)
        monkeypatch.setattr(project_lock, "hold_project", lambda *_, **__: nullcontext())
        monkeypatch.setattr(plan, "planned_stages", lambda: list(stages))
        pipeline._plan(None)
        return capsys.readouterr().out.splitlines()

    return printed_lines


def test_a_plan_without_stages_says_that_all_are_up_to_date(print_plan):
    assert print_plan() == ["all stages are up to date: make reproduce would run none"]


def test_stages_of_one_kind_are_printed_as_one_line(print_plan):
    """The part of a name before @ is the kind: two stages train, one cleans, one scores."""
    lines = print_plan(stage("clean@a"), stage("train@a-1"), stage("train@b-1"), stage("score@a-1"))

    assert lines == [
        f"{'clean@a':<36}  new",
        f"{'train, 2 stages':<36}  new",
        f"{'score@a-1':<36}  new",
    ]


def test_only_one_of_the_reasons_that_differ_in_names_alone_is_printed(print_plan):
    """The first two and the last two of the five stages run for similar reasons."""
    (line,) = print_plan(
        stage("score@a-1", "after translate@a-1"),
        stage("score@b-1", "after translate@b-1"),
        stage("score@c-1", "its code has changed"),
        stage("score@d-1", "data/x has changed"),
        stage("score@e-1", "data/y has changed"),
    )

    reasons = "after translate@a-1; its code has changed; data/x has changed"
    assert line == f"{'score, 5 stages':<36}  {reasons}"


def test_the_times_of_stages_of_one_kind_are_added(print_plan):
    line, total = print_plan(
        stage("train@a-1", last_seconds=60.0), stage("train@b-1", last_seconds=3600.0)
    )

    # 1 minute and 1 hour
    assert line == f"{'train, 2 stages':<36}  new; took 1:01:00"
    assert total == "2 of these took 1:01:00 when they last ran here"


def test_a_time_with_another_seed_replaces_an_unknown_time_and_is_marked(print_plan):
    """Seed 2 of the system has not been trained; a training with another seed took 2 minutes."""
    line, total = print_plan(
        stage("train@a-1", last_seconds=60.0),
        stage("train@a-2", last_seconds_with_another_seed=120.0),
    )

    # 1 minute and 2 minutes
    assert line == f"{'train, 2 stages':<36}  new; took 0:03:00 with another seed"
    assert total == "2 of these took 0:03:00 when they last ran here"


def test_a_time_of_zero_counts_as_known(print_plan):
    """Else the time with another seed, 2 minutes, would replace it."""
    line, total = print_plan(
        stage("train@a-1", last_seconds=0.0, last_seconds_with_another_seed=120.0)
    )

    assert line.startswith(f"{'train@a-1':<36}  new; took ")
    assert "0:02:00" not in total


def test_a_line_with_a_stage_of_unknown_time_has_no_time(print_plan):
    """The last line adds the known times, 60 and 30 seconds, and counts the unknown ones."""
    *lines, total = print_plan(
        stage("train@a-1", last_seconds=60.0),
        stage("train@b-1"),
        stage("score@a-1", last_seconds=30.0),
        stage("score@b-1"),
        stage("score@c-1"),
    )

    assert lines == [f"{'train, 2 stages':<36}  new", f"{'score, 3 stages':<36}  new"]
    assert total == (
        "2 of these took 0:01:30 when they last ran here; "
        "the time of 3 others (train, score) is unknown"
    )


def test_a_plan_without_known_times_ends_without_a_total(print_plan):
    assert print_plan(stage("train@a-1")) == [f"{'train@a-1':<36}  new"]
