"""Trainings of one thread run beside each other, and DVC takes them for its own."""

import pytest

from bleuprint.pipeline import side_by_side
from bleuprint.pipeline.graph import stages
from bleuprint.pipeline.plan import planned_stages

TRAININGS = ["train@tiny-other-1", "train@tiny-own-1", "train@wide-own-1"]
# Ends once two trainings run at the same time, and fails if there is only one for ten seconds.
MEETING = """\
mkdir -p work/meeting; touch work/meeting/$$
for _ in $(seq 100); do test $(ls work/meeting | wc -l) -ge 2 && exit 0; sleep 0.1; done; exit 1
"""


@pytest.fixture
def project(stand_in, tmp_path, monkeypatch):
    """One with portable arithmetic, not yet run with it, as the folder of this process."""
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", "  tiny:\n", "  tiny:\n    arithmetic: portable\n")
    monkeypatch.chdir(copy.root)
    monkeypatch.setenv("PATH", copy.environment["PATH"])
    monkeypatch.setattr(side_by_side, "_cores", lambda: 2)
    return copy


def wanted():
    return side_by_side.trainings([each.stage for each in planned_stages()])


def test_trainings_run_at_the_same_time_and_are_recorded(project, monkeypatch):
    found = wanted()
    assert sorted(stage.name for stage in found) == TRAININGS
    texts = {f"{kind}@{name}" for kind in ("binarize", "split") for name in ("own", "other")}
    assert set(side_by_side.makers(found)) == texts
    monkeypatch.setenv("WHILE_TRAINING", MEETING)
    names: list[str] = []
    assert side_by_side.run(found, names.append) == 0
    assert sorted(names) == TRAININGS
    assert not {*TRAININGS} & project.changed()


def test_after_a_failure_none_is_started(project, monkeypatch):
    monkeypatch.setenv("WHILE_TRAINING", "exit 1")
    names: list[str] = []
    assert side_by_side.run(wanted(), names.append) != 0
    assert len(names) == 2
    assert {*TRAININGS} <= project.changed()


@pytest.mark.usefixtures("project")
def test_one_training_or_one_core_is_left_to_dvc(monkeypatch):
    found = wanted()
    assert side_by_side.trainings(found[:1]) == []
    native = [stage for stage in stages() if stage.kind == "score"]
    assert side_by_side.trainings([*found[:1], *native]) == []
    monkeypatch.setattr(side_by_side, "_cores", lambda: 1)
    assert side_by_side.trainings(found) == []
