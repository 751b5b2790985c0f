"""What `dvc repro` would run, by `bleuprint plan`, against what it does run."""

import re
import shutil

import pytest

import micro
from bleuprint.pipeline.plan import planned_stages
from bleuprint.runtime.errors import UserError


def planned(project):
    return {each.stage.name: each.why for each in planned_stages(project.root)}


def test_nothing_is_planned_when_all_is_up_to_date_or_in_the_cache(reproduced):
    assert planned(reproduced) == {}
    shutil.rmtree(reproduced.root / "models")
    (reproduced.root / "results/tiny/own/1/scores.json").unlink()
    assert reproduced.changed()
    assert planned(reproduced) == {}
    assert reproduced.repro() == []


def test_a_clone_without_the_cache_would_run_all(by_dvc, tmp_path):
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(tmp_path / "clone"))
    plan = planned(micro.Project(tmp_path / "clone"))
    missing = plan["clean@own"]
    assert re.fullmatch("data/.*own.* is neither here nor in DVC's cache", missing)
    assert len(plan) == 21 and "resolve" not in plan  # whose output is in git
    (tmp_path / "clone/dvc.lock").unlink()
    assert set(planned(micro.Project(tmp_path / "clone")).values()) == {"has not run yet"}


def test_a_file_in_inputs_concerns_the_corpora_that_name_it(reproduced):
    reproduced.write("inputs/unnamed.txt", "x\n")
    assert planned(reproduced) == {"resolve": "inputs has changed"}
    assert reproduced.repro() == ["resolve"]

    reproduced.write("inputs/a.en", reproduced.read("inputs/a.en") + "\n")
    reproduced.write("inputs/a.de", reproduced.read("inputs/a.de") + "\n")
    assert planned(reproduced)["download@own"] == "files of own in inputs/ have changed"
    output = reproduced.run("dvc", "repro", "download@own")
    assert micro.ran(output) == ["resolve", "download@own"]


def test_an_edit_of_code_or_command_is_named(reproduced):
    reproduced.edit("src/bleuprint/training/lr_schedule.py", "import math", "import math, sys")
    reproduced.edit(
        "dvc.yaml", "python stages/learn_vocabulary.py", "python -X dev stages/learn_vocabulary.py"
    )
    plan = planned(reproduced)
    assert plan["train@tiny-own-1"] == "its code has changed"
    assert plan["learn_vocabulary@own"] == "its command has changed"
    assert plan["binarize@own"] == "after learn_vocabulary@own"
    assert "tokenize@own" not in plan


def test_what_is_planned_runs_and_took_as_long_before(reproduced):
    reproduced.edit("params.yaml", "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n")
    output = reproduced.run("bleuprint", "plan")
    line = r"^train@wide-own-1 +systems\.wide\.own\.model.* has changed; took 0:00:\d\d$"
    assert re.search(line, output, re.MULTILINE)
    assert re.search(r"^average@wide-own-1 +after train@wide-own-1; ", output, re.MULTILINE)
    assert "tiny" not in output
    assert re.search(r"^\d of these took 0:0\d:\d\d when they last ran here$", output, re.MULTILINE)
    names = set(planned(reproduced))
    assert set(reproduced.repro()) == names
    again = reproduced.run("bleuprint", "plan")
    assert again == "all stages are up to date: dvc repro would run none\n"


def test_a_conflict_of_a_merge_is_one_clear_line(reproduced):
    lock = reproduced.read("dvc.lock")
    reproduced.write("dvc.lock", f"<<<<<<< HEAD\n{lock}=======\n{lock}>>>>>>> theirs\n")
    output = reproduced.run("bleuprint", "plan", status=1)
    assert output.startswith("bleuprint: error: dvc.lock: has both sides of a git merge; take one:")
    assert output.count("\n") == 1


def test_without_stages_nothing_is_up_to_date(tmp_path):
    (tmp_path / "params.yaml").write_text(micro.PARAMS)
    micro.Project(tmp_path).run("dvc", "init", "--no-scm", "--quiet")
    for text in ("", "stages: {}\n"):
        (tmp_path / "dvc.yaml").write_text(text)
        with pytest.raises(
            UserError, match=r"dvc\.yaml: no stages; git checkout dvc.yaml restores"
        ):
            planned_stages(tmp_path)
