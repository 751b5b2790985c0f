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
from result_rows import TWO_SYSTEMS, changed, record, records_from_rows
from root import ROOT


def test_a_stage_is_printed_with_its_number_among_the_planned_stages():
    lines = StageLines({"clean@a": None, "dedup@a": 4.0})

    assert lines.next("clean@a", is_restored=False) == "[1/2] clean@a"
    assert lines.next("dedup@a", is_restored=False) == "[2/2] dedup@a"


def test_a_stage_that_is_not_planned_is_printed_without_a_number():
    lines = StageLines({"clean@a": None})

    assert lines.next("new@b", is_restored=False) == "new@b"


def test_a_stage_whose_outputs_come_from_the_run_cache_is_printed_as_such():
    lines = StageLines({"average@x-a-1": 1.0})

    line = lines.next("average@x-a-1", is_restored=True)

    assert line == "[1/1] average@x-a-1: outputs from the run cache"


@pytest.mark.parametrize(
    ("stage", "last_seconds", "expected_line"),
    [
        pytest.param("dedup@a", 90.0, "[1/1] dedup@a (took 0:01:30 before)", id="long"),
        pytest.param("dedup@a", 4.0, "[1/1] dedup@a", id="short"),
        # A training prints its expected time itself.
        pytest.param("train@x-a-1", 90.0, "[1/1] train@x-a-1", id="training"),
    ],
)
def test_a_long_stage_is_printed_with_the_time_it_took_before(stage, last_seconds, expected_line):
    lines = StageLines({stage: last_seconds})

    assert lines.next(stage, is_restored=False) == expected_line


def test_stages_are_numbered_in_the_order_in_which_they_begin():
    """The longest training begins first, even if params.yaml lists its system last."""
    lines = StageLines({"train@tiny-a-1": None, "train@large-a-1": None})

    first_line = lines.next("train@large-a-1", is_restored=False)
    second_line = lines.next("train@tiny-a-1", is_restored=False)

    assert first_line == "[1/2] train@large-a-1"
    assert second_line == "[2/2] train@tiny-a-1"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Make a project whose results, TWO_SYSTEMS, are committed; return its settings.

    Its folder is the current one. `make reproduce` finds the same in a clone.
    """
    monkeypatch.chdir(tmp_path)
    settings = trees.settings_in(tmp_path)
    records_from_rows(*TWO_SYSTEMS).save(tmp_path / RESULTS)
    git("init", "-q")
    Repo.init(str(tmp_path)).close()
    git("add", ".")
    git("commit", "-qm", "one")
    return settings


def git(*arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], check=True)


def test_unchanged_files_are_reported_as_the_results_of_the_last_commit(project):
    """`make reproduce` ends with this line, then three lines on the next steps."""
    first_line, *next_steps = closing_lines(project)

    assert first_line.startswith(
        "Same results as in the last commit: dvc.lock and reports/ have not"
    )
    assert len(next_steps) == 3
    assert "reports/index.html" in next_steps[0]


def test_a_changed_report_is_named_if_the_results_are_the_same(project):
    """costs.csv contains running times, which differ between runs with equal translations."""
    _, *next_steps = closing_lines(project)
    Path("reports/costs.csv").write_text(costs_csv(records_from_rows(*TWO_SYSTEMS).runs))

    assert closing_lines(project) == [
        "Same results as HEAD: translations and scores are equal to the byte.",
        "Changed: reports/costs.csv. To keep it: git add reports && git commit",
        *next_steps,
    ]


def test_results_are_compared_if_params_yaml_was_committed_in_another_notation(project):
    """The experiment `trial_run` is quoted and has a comment in the commit: YAML reads the same."""
    Path("reports/costs.csv").write_text(costs_csv(records_from_rows(*TWO_SYSTEMS).runs))
    params = Path("params.yaml").read_text()
    Path("params.yaml").write_text(params.replace("trial_run", "'trial_run' # ours"))
    git("commit", "-qam", "two")

    first_line = closing_lines(project)[0]

    assert first_line.startswith("Same results as HEAD: ")


def test_results_that_differ_from_the_last_commit_are_counted(project):
    """The BLEU of the system `small` is changed in the three of the six results that have it."""
    results = changed(
        records_from_rows(*TWO_SYSTEMS), {"system": "small", "metric": "bleu"}, value=50.0
    )
    results.save(RESULTS)

    assert closing_lines(project)[0] == (
        "3 of 6 results differ from HEAD. To see where: bleuprint verify HEAD"
    )


def test_new_and_missing_results_are_counted(project):
    """The commit has six results: four of them stay, two are removed, and one is new."""
    new_result = record("new", "news-en-de", "first", 35.0)
    records_from_rows(*TWO_SYSTEMS[:4], new_result).save(RESULTS)

    assert closing_lines(project)[0] == (
        "4 of 5 results equal HEAD to the byte; 1 is new; 2 of HEAD are missing."
    )


def test_paths_of_files_to_commit_start_at_the_folder_of_the_project(project, monkeypatch):
    """The project is in a folder `below` of the Git repository; Git prints paths from its root.

    Names that are not ASCII are printed as they are; a byte that is not UTF-8 becomes U+FFFD.
    """
    shutil.copytree(".", "below", ignore=shutil.ignore_patterns(".git"))
    git("add", "--force", "below")
    git("commit", "-qm", "two")
    monkeypatch.chdir("below")
    Path("corpora").mkdir()
    Path("corpora/größe.yaml").write_text("x")
    Path(os.fsdecode(b"corpora/\xff.yaml")).write_text("x")

    lines = closing_lines(project)

    changed_files = "corpora/größe.yaml, corpora/\ufffd.yaml"
    expected_line = f"Changed: {changed_files}. To keep it: git add corpora && git commit"
    assert [line for line in lines if line.startswith("Changed: ")] == [expected_line]


def test_new_own_code_is_a_file_to_commit(project):
    """A clone without it could not read params.yaml."""
    Path("own").mkdir()
    Path("own/relative.py").write_text("x = 1\n")

    lines = closing_lines(project)

    expected_line = "Changed: own/relative.py. To keep it: git add own && git commit"
    assert [line for line in lines if line.startswith("Changed: ")] == [expected_line]


@pytest.fixture
def mine(project):
    """Name the experiment `mine`, whose results belong to reports/mine/; return its settings."""
    Path("params.yaml").write_text("experiment: mine\n")
    return replace(project, experiment="mine")


def test_an_experiment_is_compared_with_the_results_of_its_name(mine):
    """`make reproduce` has made TWO_SYSTEMS; reports/mine/ contains the same results."""
    records_from_rows(*TWO_SYSTEMS).save(Path("reports/mine/results.json"))

    assert closing_lines(mine)[0].startswith("Same results as reports/mine: ")


@pytest.mark.parametrize("results", [None, "{}"], ids=["no results", "results of an old version"])
def test_an_experiment_without_comparable_results_is_reported_as_such(mine, results):
    if results is not None:
        Path("reports/mine").mkdir()
        Path("reports/mine/results.json").write_text(results)

    assert closing_lines(mine)[0] == (
        "Nothing to compare with: no results of this experiment are committed."
    )


def test_outside_a_git_repository_only_the_next_steps_are_printed(mine):
    """These are three lines; in a repository, a line on the committed results precedes them."""
    shutil.rmtree(".git")

    assert len(closing_lines(mine)) == 3


@pytest.mark.parametrize(
    ("recipe", "next_step"),
    [
        pytest.param(
            "phrasebook", "make recipe NAME=own, then bleuprint new-corpus", id="example text"
        ),
        pytest.param("own", "bleuprint translate", id="text of the user"),
    ],
)
def test_the_last_line_proposes_what_to_do_next(recipe, next_step):
    """After an example, a user trains on text of their own, in inputs/; after that, translates."""
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")

    last_line = closing_lines(settings)[-1]

    assert next_step in last_line
