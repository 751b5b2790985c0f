"""The lines of `bleuprint plan`: stages of one kind together, reasons once, times if known."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from bleuprint.cli import pipeline
from bleuprint.pipeline import plan, project_lock


def stage(name, why="new", last_seconds=None, last_seconds_with_another_seed=None):
    kind = name.partition("@")[0]
    return SimpleNamespace(
        stage=SimpleNamespace(kind=kind, name=name),
        why=why,
        last_seconds=last_seconds,
        last_seconds_with_another_seed=last_seconds_with_another_seed,
    )


@pytest.fixture
def printed(monkeypatch, capsys):
    """A function: the lines of a plan of these stages."""

    def lines(*stages):
        monkeypatch.setattr(pipeline, "load_settings", lambda: None)
        monkeypatch.setattr(project_lock, "hold_project", lambda *_, **__: nullcontext())
        monkeypatch.setattr(plan, "planned_stages", lambda: list(stages))
        pipeline._plan(None)
        return capsys.readouterr().out.splitlines()

    return lines


def test_without_a_stage_all_is_up_to_date(printed):
    assert printed() == ["all stages are up to date: make reproduce would run none"]


def test_stages_of_one_kind_are_one_line(printed):
    lines = printed(stage("clean@a"), stage("train@a-1"), stage("train@b-1"), stage("score@a-1"))
    assert lines == [
        f"{'clean@a':<36}  new",
        f"{'train, 2 stages':<36}  new",
        f"{'score@a-1':<36}  new",
    ]


def test_reasons_that_differ_in_names_alone_are_said_once(printed):
    (line,) = printed(
        stage("score@a-1", "after translate@a-1"),
        stage("score@b-1", "after translate@b-1"),
        stage("score@c-1", "its code has changed"),
        stage("score@d-1", "data/x has changed"),
        stage("score@e-1", "data/y has changed"),
    )
    assert line == f"{'score, 5 stages':<36}  after translate@a-1; its code has changed; " + (
        "data/x has changed"
    )


def test_times_of_a_kind_are_added(printed):
    line, total = printed(
        stage("train@a-1", last_seconds=60.0), stage("train@b-1", last_seconds=3600.0)
    )
    assert line == f"{'train, 2 stages':<36}  new; took 1:01:00"
    assert total == "2 of these took 1:01:00 when they last ran here"


def test_times_with_another_seed_are_added_and_said(printed):
    line, total = printed(
        stage("train@a-1", last_seconds=60.0),
        stage("train@a-2", last_seconds_with_another_seed=120.0),
    )
    assert line == f"{'train, 2 stages':<36}  new; took 0:03:00 with another seed"
    assert total == "2 of these took 0:03:00 when they last ran here"


def test_a_stage_that_took_no_time_has_a_known_time(printed):
    """Its time with another seed is not asked for."""
    line, total = printed(
        stage("train@a-1", last_seconds=0.0, last_seconds_with_another_seed=120.0)
    )
    assert line.startswith(f"{'train@a-1':<36}  new; took ")
    assert "0:02:00" not in total


def test_a_kind_of_which_one_time_is_unknown_has_none(printed):
    *lines, total = printed(
        stage("train@a-1", last_seconds=60.0),
        stage("train@b-1"),
        stage("score@a-1", last_seconds=30.0),
        stage("score@b-1"),
        stage("score@c-1"),
    )
    assert lines == [f"{'train, 2 stages':<36}  new", f"{'score, 3 stages':<36}  new"]
    assert total == (
        "2 of these took 0:01:30 when they last ran here; "
        "not known: the time of 3 others (train, score)"
    )


def test_without_a_known_time_there_is_no_total(printed):
    assert printed(stage("train@a-1")) == [f"{'train@a-1':<36}  new"]
