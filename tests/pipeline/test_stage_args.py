"""What every script in stages/ does with its arguments."""

import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from bleuprint.pipeline import stage_args


@pytest.mark.parametrize("kind", ["train", "average", "translate", "score"])
def test_a_cell_that_is_left_out_has_empty_outputs(project, stages, tmp_path, monkeypatch, kind):
    """DVC's matrix has no exclusions: the stage must write what dvc.yaml names."""
    root = project.copy(tmp_path / "project").root
    settings = SimpleNamespace(cells={"wide": {"own": None}})
    monkeypatch.chdir(root)
    monkeypatch.setattr(stage_args, "load_resolved", lambda: settings)
    monkeypatch.setattr(stage_args, "AT_SUCCESS", [])
    monkeypatch.setattr(sys, "argv", [f"stages/{kind}.py", "wide", "own", "1"])
    with pytest.raises(SystemExit) as ended:
        stage_args.cell(None)
    assert ended.value.code is None
    outputs = stages[f"{kind}@wide-own-1"].outputs
    assert outputs
    for output in outputs:
        path = root / output
        file = path / "empty" if path.is_dir() else path
        assert file.read_text() == "{}\n"


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
