"""A training is known by what decides it: runs that share it train once."""

import json
from importlib.metadata import version

import pytest

from params import write_resolved
from trainings import project, start


def renamed(root, names):
    """Write the system of params.yaml under these names."""
    params = root / "params.yaml"
    text = params.read_text()
    head, system = text.split("  micro:\n")
    params.write_text(head + "".join(f"  {name}:\n{system}" for name in names))
    write_resolved(root)


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


def outputs(root, system):
    """All files of a run by path; those in timings are measured."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for folder in (root / "models" / system, root / "results" / system)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def ended(*processes):
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


def test_a_renamed_system_trains_nothing(root):
    ended(start(root))
    (work,) = (root / "work/trainings").glob("[!.]*")
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*")}
    renamed(root, ["other"])
    ended(start(root, system="other"))
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*")} == before
    assert [path.name for path in (root / "work/trainings").glob("[!.]*")] == [work.name]
    assert outputs(root, "other") == outputs(root, "micro") != {}
    (timed,) = root.glob("timings/other/toy/1/train-*.json")
    assert timed.name == next(root.glob("timings/micro/toy/1/train-*.json")).name
    assert f", sacremoses {version('sacremoses')}" in json.loads(timed.read_text())["versions"]


def test_two_runs_with_one_training_that_start_together_train_once(root):
    renamed(root, ["micro", "twin"])
    said = ended(*(start(root, system=name) for name in ("micro", "twin")))
    assert "".join(said).count(": another process is running this training (kill ") == 1
    assert len(list((root / "work/trainings").glob("[!.]*"))) == 1
    assert outputs(root, "twin") == outputs(root, "micro") != {}


def test_an_edit_of_the_settings_waits_for_the_next_resolve(root):
    """What is trained is what DVC records: the settings of reports/resolved.json."""
    params = root / "params.yaml"
    text = params.read_text()
    edited = text.replace("max_updates: 50", "max_updates: 40")
    assert edited != text
    params.write_text(edited)
    ended(start(root))
    training = json.loads((root / "results/micro/toy/1/training.json").read_text())
    assert training["updates"] == 50
