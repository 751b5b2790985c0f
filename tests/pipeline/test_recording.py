"""Marks of finished stages: when they hold, and how they are recorded in DVC."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

import micro
from bleuprint.pipeline import graph, recording
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.runtime.errors import UserError


@pytest.fixture
def finished(project, tmp_path, stages):
    """A project in which a stage has run, with its mark, and one that depends on it.

    Their files were written where the clock was an hour ahead.
    """
    root = project.copy(tmp_path / "project").root
    both = stages["clean@own"], stages["dedup@own"]
    for path in (*stages["download@own"].outputs, *both[0].outputs, *both[1].outputs):
        file = root / path if Path(path).suffix else root / path / "train" / "a.en"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("two\nlines\n")
        for written in (file, root / path):
            os.utime(written, (time.time() + 3600, time.time() + 3600))
    inputs = graph.input_paths(stages.values(), root)
    for stage in both:
        recording.mark_started(stage.name, stage.digest, *inputs[stage.name], root=root)
        (root / f"{stage.mark}.begun").rename(root / stage.mark)
    return root, *both


@pytest.fixture
def marked(stages):
    """A function: which of both stages have a valid mark."""

    def marked(root, *both):
        inputs, lock = graph.input_paths(stages.values(), root), LockFile.read(root)
        return [s.name for s in both if recording._is_finished(s, inputs[s.name], lock, root)]

    return marked


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ("data/raw/own/given/train/a.en", ["dedup@own"]),
        ("data/clean/own/train/a.en", ["clean@own"]),
        ("data/dedup/own/train/a.en", ["clean@own", "dedup@own"]),
    ],
)
@pytest.mark.parametrize("seconds", [-7200, 7200])
def test_a_mark_is_void_where_something_has_changed_since(finished, marked, changed, left, seconds):
    path = finished[0] / changed
    then = path.stat().st_mtime + seconds
    os.utime(path, (then, then))
    assert marked(*finished) == left


def test_a_mark_is_void_where_a_file_has_come_or_gone_or_grown(finished, marked):
    root, first, second = finished
    file = root / "data/clean/own/train/a.en"
    before = file.stat()
    file.with_name("a.de").touch()
    assert marked(root, first, second) == ["clean@own"]
    file.with_name("a.de").unlink()
    assert marked(root, first, second) == ["clean@own", "dedup@own"]
    file.write_text("another two\nlines\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert marked(root, first, second) == ["clean@own"]
    file.unlink()
    assert marked(root, first, second) == ["clean@own"]


def test_a_mark_holds_where_snakemake_has_touched_a_folder(finished, marked):
    (finished[0] / "data/clean/own/.snakemake_timestamp").touch()
    assert marked(*finished) == ["clean@own", "dedup@own"]


def test_a_mark_is_void_without_an_output(finished, marked):
    (finished[0] / "data/filter_stats/own/clean.json").unlink()
    assert marked(*finished) == ["dedup@own"]


def test_a_mark_is_void_under_other_settings_or_another_command(finished, marked):
    root, first, second = finished
    assert marked(root, replace(first, parameters={}), second) == ["dedup@own"]
    # the command that ran was another one than dvc.yaml's at its beginning
    mark = root / first.mark
    mark.write_text(mark.read_text().replace(first.digest, second.digest))
    assert marked(root, first, second) == ["dedup@own"]


def test_a_mark_is_void_where_dvc_has_run_the_stage_since(finished, marked):
    # as by `dvc repro -s` under other settings, taken back afterwards
    entries = "schema: '2.0'\nstages:\n  clean@own:\n    cmd: a\n    outs:\n    - path: b\n"
    (finished[0] / "dvc.lock").write_text(entries)
    assert marked(*finished) == ["dedup@own"]
    (finished[0] / "dvc.lock").write_text(entries.replace("clean@own", "clean@owner"))
    assert marked(*finished) == ["clean@own", "dedup@own"]


def test_of_void_marks_those_are_named_whose_stages_have_not_run_since(finished, capsys):
    root, first, second = finished
    recording.record_finished(root)
    assert "not recorded" not in capsys.readouterr().err
    (root / first.mark).write_text("of a killed run")
    recording.record_finished(root)
    assert "not recorded" not in capsys.readouterr().err
    (root / "data/clean/own/train/a.en").write_text("another\n")
    (root / first.mark).write_text("of a killed run")
    (root / second.mark).write_text("of a killed run")
    recording.record_finished(root)
    said = "not recorded, since an input has changed after their start: clean@own, dedup@own. "
    assert said in capsys.readouterr().err


def test_a_record_that_fails_is_one_line_and_can_be_repeated(finished, capsys):
    root = finished[0]
    cache = root / ".dvc" / "cache"
    cache.write_text("no folder")
    with pytest.raises(
        UserError, match=r"^DVC did not record .*cache.*\. To try again: bleuprint sync"
    ):
        recording.record_finished(root)
    assert not (root / "dvc.lock").exists()
    cache.unlink()
    recording.record_finished(root)
    stages = len(graph.load_stages(root))
    assert capsys.readouterr().err.endswith(f"recorded in DVC: 2 of {stages} stages\n")
    assert micro.Project(root).recorded() == {"clean@own", "dedup@own"}
    recording.record_finished(root)
    assert "recorded in DVC: 0 of" in capsys.readouterr().err
