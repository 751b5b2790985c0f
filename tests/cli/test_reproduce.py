"""`bleuprint reproduce`: the line of a stage, and what is to be committed."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from dvc.repo import Repo

import result_trees as trees
from bleuprint.cli.reproduce import StageLines, closing_lines
from bleuprint.config.experiment import load_settings
from bleuprint.report.frame import RESULTS
from bleuprint.report.training_costs import costs_csv
from result_rows import TWO_SYSTEMS, changed, frame, record
from root import ROOT


def test_a_stage_is_one_line_with_its_number_and_what_it_took():
    planned = {"clean@a": None, "train@x-a-1": 90.0, "average@x-a-1": 1.0}
    lines = StageLines(planned)
    assert lines.next("clean@a", is_restored=False) == "[1/3] clean@a"
    assert lines.next("new@b", is_restored=False) == "new@b"
    assert lines.next("train@x-a-1", is_restored=False) == "[2/3] train@x-a-1"  # it says so itself
    from_cache = "[3/3] average@x-a-1: outputs from the run cache"
    assert lines.next("average@x-a-1", is_restored=True) == from_cache
    took = StageLines({"dedup@a": 90.0}).next("dedup@a", is_restored=False)
    assert took == "[1/1] dedup@a (took 0:01:30 before)"
    assert StageLines({"dedup@a": 4.0}).next("dedup@a", is_restored=False) == "[1/1] dedup@a"


def test_stages_are_numbered_in_the_order_in_which_they_begin():
    """The longest training begins first, wherever params.yaml has its system."""
    lines = StageLines({"train@tiny-a-1": None, "train@large-a-1": None})
    began = [lines.next(f"train@{name}-a-1", is_restored=False) for name in ("large", "tiny")]
    assert began == ["[1/2] train@large-a-1", "[2/2] train@tiny-a-1"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Results in git, as `make reproduce` finds them in a clone."""
    monkeypatch.chdir(tmp_path)
    settings = trees.settings_in(tmp_path)
    frame(*TWO_SYSTEMS).save(tmp_path / RESULTS)
    git("init", "-q")
    Repo.init(str(tmp_path)).close()
    git("add", ".")
    git("commit", "-qm", "one")
    return settings


def git(*arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], check=True)


def test_the_end_says_whether_it_is_the_committed_result(project):
    same, *after = closing_lines(project)
    assert same.startswith("Same results as in the last commit: dvc.lock and reports/ have not")
    assert len(after) == 3 and "reports/index.html" in after[0]
    Path("reports/costs.csv").write_text(costs_csv(frame(*TWO_SYSTEMS).runs))
    assert closing_lines(project) == [
        "Same results as HEAD: translations and scores are equal to the byte.",
        "Changed: reports/costs.csv. To keep it: git add reports && git commit",
        *after,
    ]
    params = Path("params.yaml").read_text()
    Path("params.yaml").write_text(params.replace("trial_run", "'trial_run' # ours"))
    git("commit", "-qam", "two")
    assert closing_lines(project)[0].startswith("Same results as HEAD: ")
    better = changed(frame(*TWO_SYSTEMS), {"system": "small", "metric": "bleu"}, value=50.0)
    better.save(RESULTS)
    assert closing_lines(project)[0] == (
        "3 of 6 results differ from HEAD. To see where: bleuprint verify HEAD"
    )
    frame(*TWO_SYSTEMS[:4], record("new", "news-en-de", "first", 35.0)).save(RESULTS)
    said = "4 of 5 results equal HEAD to the byte; 1 is new; 2 of HEAD are missing."
    assert closing_lines(project)[0] == said


def test_files_to_commit_are_named_from_the_projects_folder(project, monkeypatch):
    shutil.copytree(".", "below", ignore=shutil.ignore_patterns(".git"))
    git("add", "--force", "below")
    git("commit", "-qm", "two")
    monkeypatch.chdir("below")
    Path("corpora").mkdir()
    Path("corpora/größe.yaml").write_text("x")
    Path(os.fsdecode(b"corpora/\xff.yaml")).write_text("x")
    (line,) = (line for line in closing_lines(project) if line.startswith("Changed: "))
    named = "corpora/größe.yaml, corpora/\ufffd.yaml"
    assert line == f"Changed: {named}. To keep it: git add corpora && git commit"


def test_an_experiment_is_compared_with_the_committed_results_of_its_name(project):
    none = "Nothing to compare with: no results of this experiment are committed."
    own = replace(project, experiment="mine")
    Path("params.yaml").write_text("experiment: mine\n")
    assert closing_lines(own)[0] == none
    frame(*TWO_SYSTEMS).save(Path("reports/mine/results.json"))
    assert closing_lines(own)[0].startswith("Same results as reports/mine: ")
    Path("reports/mine/results.json").write_text("{}")  # of an earlier version
    assert closing_lines(own)[0] == none
    shutil.rmtree(".git")
    assert len(closing_lines(own)) == 3


def test_with_text_in_inputs_the_next_step_is_to_translate():
    recipes = {
        name: load_settings(ROOT / "recipes" / f"{name}.yaml") for name in ("phrasebook", "own")
    }
    last = {name: closing_lines(settings)[-1] for name, settings in recipes.items()}
    assert "make recipe NAME=own, then bleuprint new-corpus" in last["phrasebook"]
    assert "bleuprint translate" in last["own"]
