"""What `dvc repro` would run, by `bleuprint plan`, against what it does run."""

import re
import shutil
import subprocess
from threading import Event, Thread
from types import SimpleNamespace

import pytest

import micro
from bleuprint.cli import pipeline
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline import plan, project_lock
from bleuprint.pipeline.graph import load_stages
from bleuprint.pipeline.plan import planned_stages
from bleuprint.pipeline.project_lock import hold_project
from bleuprint.pipeline.resolve import resolved_content
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError


@pytest.fixture
def project(stand_in, tmp_path):
    return stand_in.copy(tmp_path / "project")


def planned(project):
    return {each.stage.name: each.why for each in planned_stages(project.root)}


def test_nothing_is_planned_when_all_is_up_to_date_or_in_the_cache(project):
    assert planned(project) == {}
    shutil.rmtree(project.root / "models")
    (project.root / "results/tiny/own/1/scores.json").unlink()
    assert planned(project) == {}


def test_a_clone_without_the_cache_would_run_all(stand_in, tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", stand_in.root, clone], check=True)
    found = planned(micro.Project(clone))
    assert re.fullmatch("data/.*own.* is neither here nor in DVC's cache", found["clean@own"])
    assert len(found) == 40 and found["resolve"] == "inputs has changed"
    (clone / "dvc.lock").unlink()
    assert set(planned(micro.Project(clone)).values()) == {"has not finished here yet"}


def test_what_follows_a_stage_that_has_ended_before_a_stop_is_planned(project):
    translations = "results/tiny/own/1/hypotheses"
    path = next((project.root / translations).iterdir())
    path.write_text(f"{path.read_text()}more\n")
    assert planned(project) == {}  # by dvc repro it comes from the cache
    project.run("dvc", "commit", "--force", "translate@tiny-own-1")
    assert planned(project)["score@tiny-own-1"] == f"{translations} has changed"


def test_an_edited_report_is_planned(project):
    results = project.read("reports/results.json")
    project.write("reports/results.json", f"{results} ")
    assert planned(project) == {"report": "reports/results.json has changed"}


def test_a_plan_sets_no_results_aside(project):
    project.edit("params.yaml", "  wide:\n", "  wider:\n")
    assert planned(project)["train@wider-own-1"] == "has not finished here yet"
    assert (project.root / "results/wide/own/1/scores.json").exists()


def test_a_setting_that_the_report_alone_shows_runs_it(project):
    project.edit("params.yaml", "experiment: micro", "experiment: renamed")
    resolved = "reports/resolved.json has changed"
    assert planned(project) == {"resolve": "params.yaml has changed", "report": resolved}


def test_a_file_in_inputs_concerns_the_corpora_that_name_it(project):
    project.write("inputs/unnamed.txt", "x\n")
    assert planned(project) == {"resolve": "inputs has changed"}
    project.write("inputs/b.en", "b\n")
    assert planned(project)["download@other"] == "files of other in inputs/ have changed"
    assert "download@own" not in planned(project)


def test_a_stage_of_ones_own_may_be_any_command_with_any_params(project):
    params = "    params: [experiment, reports/resolved.json: ]\n    outs: [p.pdf]\n"
    entry = f"  paper:\n    cmd: [make paper, echo don\\'t]\n{params}"
    meta = "    meta: {threads: 1, memory_gb: 1, hours: 1}\n"
    project.edit("dvc.yaml", "\nstages:\n", f"\nstages:\n{entry}{meta}")
    (found,) = (each for each in planned_stages(project.root) if each.stage.name == "paper")
    assert (found.last_seconds, found.why) == (None, "has not finished here yet")
    assert found.stage.command == "make paper && echo don\\'t"
    assert {"params.yaml", "reports/resolved.json"} <= {*found.stage.dependencies}
    rules = make_rules(load_stages(project.root), root=project.root)
    (rule,) = (rule for rule in rules if rule.name == "paper")
    assert (rule.files, rule.folders) == (["p.pdf"], [])
    project.edit("dvc.yaml", meta, "")
    with pytest.raises(UserError, match=r"^dvc\.yaml: stage paper: meta lacks threads, "):
        planned_stages(project.root)


def test_it_waits_for_a_run(project, monkeypatch):
    monkeypatch.chdir(project.root)
    done = list[str]()
    monkeypatch.setattr(plan, "planned_stages", lambda: done.append("planned") or [])
    is_waiting = Event()
    wait_or_refuse = project_lock._note_waiting_or_refuse

    def begin_to_wait(holder, wait):
        is_waiting.set()
        wait_or_refuse(holder, wait)

    monkeypatch.setattr(project_lock, "_note_waiting_or_refuse", begin_to_wait)
    with hold_project("bleuprint reproduce"):
        other = Thread(target=pipeline._plan, args=(None,))
        other.start()
        assert is_waiting.wait(timeout=60)
        done.append("run")
    other.join()
    assert done == ["run", "planned"]


def test_an_edit_of_code_or_command_is_named(project):
    project.edit("src/bleuprint/training/lr_schedule.py", "import math", "import math, sys")
    project.edit(
        "dvc.yaml", "python stages/learn_vocabulary.py", "python -X dev stages/learn_vocabulary.py"
    )
    found = planned(project)
    assert found["train@tiny-own-1"] == "its code has changed"
    assert found["learn_vocabulary@own"] == "its command has changed"
    assert found["binarize@own"] == "after learn_vocabulary@own"
    assert "tokenize@own" not in found


def test_what_is_planned_runs_and_took_as_long_before(reproduced):
    """By the real stages, whose times are measured."""
    reproduced.edit("params.yaml", "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n")
    output = reproduced.run("bleuprint", "plan")
    line = r"^train@wide-own-1 +systems\.wide\.own\.model.* has changed; took \d+:\d\d:\d\d$"
    assert re.search(line, output, re.MULTILINE)
    assert re.search(r"^average@wide-own-1 +after train@wide-own-1; ", output, re.MULTILINE)
    assert "tiny" not in output
    total = r"^\d of these took \d+:\d\d:\d\d when they last ran here$"
    assert re.search(total, output, re.MULTILINE)
    names = set(planned(reproduced))
    assert set(reproduced.repro()) == names
    again = reproduced.run("bleuprint", "plan")
    assert again.splitlines()[-1] == "all stages are up to date: make reproduce would run none"


@pytest.fixture
def printed(project, monkeypatch, capsys):
    """A function: the lines of a plan of stages of one kind, by the reason and seconds of each."""
    monkeypatch.chdir(project.root)

    def printed(*planned):
        stages = [SimpleNamespace(kind="train", name=f"train@{n}") for n in range(len(planned))]
        pairs = zip(stages, planned, strict=True)
        found = [
            SimpleNamespace(
                stage=stage, why=why, last_seconds=took, last_seconds_with_another_seed=None
            )
            for stage, (why, took) in pairs
        ]
        monkeypatch.setattr(plan, "planned_stages", lambda: found)
        pipeline._plan(None)
        return capsys.readouterr().out.splitlines()

    return printed


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (0, ""),
        (1, "; not known: the time of 1 other (train)"),
        (2, "; not known: the time of 2 others (train)"),
    ],
)
def test_stages_whose_time_is_not_known_are_counted(printed, new, said):
    *_, last = printed(("new", 2.0), *[("new", None)] * new)
    assert last == f"1 of these took 0:00:02 when they last ran here{said}"


def test_a_renamed_system_has_its_training_already(reproduced):
    """The row of a new name with another training has not."""
    reproduced.edit("params.yaml", "  wide:\n", "  wider:\n")
    other = "  other:\n    like: tiny\n    model: {d_ff: 56}\n"
    reproduced.write("params.yaml", reproduced.read("params.yaml") + other)
    found = planned(reproduced)
    pattern = r"is new under this name; its training is in work/trainings/wide\.own\.1\.\w+ already"
    assert re.fullmatch(pattern, found["train@wider-own-1"])
    assert found["average@wider-own-1"] == "has not finished here yet"
    assert found["train@other-own-1"] == "has not finished here yet"


def test_a_second_seed_took_as_long_as_the_first(reproduced):
    reproduced.edit("params.yaml", "seeds: [1]", "seeds: [1, 2]")
    output = reproduced.run("bleuprint", "plan")
    for kind in ("train", "average", "translate", "score"):
        line = rf"(?m)^{kind}, 2 stages +has not .*; took \d+:\d\d:\d\d with another seed$"
        assert re.search(line, output), output


def test_shares_of_sets_that_a_corpus_has_are_no_settings_of_it(stand_in, tmp_path):
    """A corpus with a validation set draws a test set alone."""
    project = stand_in.copy(tmp_path / "project")
    for side in ("en", "de"):
        shutil.copy(project.root / f"inputs/a.{side}", project.root / f"inputs/valid.{side}")
    valid = (
        "      valid:\n        v: {license_and_citation: own, source: {path: inputs/valid.en}, "
        "target: {path: inputs/valid.de}}\n"
    )
    project.edit("params.yaml", "    filter: {length", f"{valid}    filter: {{length")
    before = resolved_content(load_settings(project.root / "params.yaml"), project.root)["corpora"]
    split = "    split: {valid: 0.2, test: 0.1}\n"
    project.edit("params.yaml", "    filter: {length", f"{split}    filter: {{length")
    after = resolved_content(load_settings(project.root / "params.yaml"), project.root)["corpora"]
    assert (before["own"]["split"]["valid"], before["own"]["split"]["test"]) == (0.05, 0.05)
    assert (after["own"]["split"]["valid"], after["own"]["split"]["test"]) == (0.05, 0.1)


def test_reasons_that_differ_in_more_than_a_run_are_all_given(printed):
    one, two = (f"systems.a.{name}.train has changed" for name in ("one", "two"))
    (line,) = printed((one, None), (two, None), ("has not finished here yet", None))
    assert line.endswith(f"  {one}; has not finished here yet")


def test_a_conflict_of_a_merge_is_one_clear_line(project):
    lock = project.read("dvc.lock")
    project.write("dvc.lock", f"<<<<<<< HEAD\n{lock}=======\n{lock}>>>>>>> theirs\n")
    said = r"dvc\.lock: contains merge conflicts; keep one side: git checkout --ours dvc\.lock, or"
    with pytest.raises(UserError, match=said):
        planned_stages(project.root)
