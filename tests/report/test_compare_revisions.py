"""`bleuprint compare` with Git revisions: reports of commits and of the working tree."""

import re
import shutil

import pytest

import result_trees as trees
from bleuprint.report.frame import RESULTS
from comparison import (
    TINY,
    cells_by_line,
    compare,
    run_command,
    score_cells,
    write_project,
    write_results,
)
from params import write_resolved

RESOLVED = "reports/resolved.json"


def commit_all(root, message):
    """Commit all changes of files that Git knows."""
    run_command(root, "git", "commit", "--quiet", "--all", "--message", message)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the project of `write_project`. Tests must not change its files."""
    root = tmp_path_factory.mktemp("project")
    write_project(root)
    return root


@pytest.fixture(scope="module")
def repository(project, tmp_path_factory):
    """Return the project in a folder of a Git repository with two commits.

    Tiny decodes with a beam of 2 at the first commit and of 5 at the second one, which is checked
    out; small is the same at both.
    """
    git_root = tmp_path_factory.mktemp("repository")
    root = shutil.copytree(project, git_root / "project")
    run_command(git_root, "git", "init", "--quiet", "--initial-branch", "main")
    run_command(root, "dvc", "init", "--quiet", "--subdir")
    run_command(root, "git", "add", "reports", "params.yaml", ".dvc")
    run_command(root, "git", "commit", "--quiet", "--message", "first")
    params = root / "params.yaml"
    text = params.read_text("utf-8")
    params.write_text(text.replace("beam: 2", "beam: 5", 1), encoding="utf-8")
    write_resolved(root)
    trees.write_run(root, trees.load_settings(params), TINY, errors=0.5)
    write_results(root)
    commit_all(root, "second")
    return root


@pytest.fixture
def repository_copy(repository, tmp_path):
    """Return a copy of the repository's project, which a test may change."""
    return shutil.copytree(repository.parent, tmp_path / "copy") / "project"


def test_a_revision_is_compared_with_the_working_tree(repository):
    output = compare(repository, "tiny@HEAD~1", "tiny")

    assert output.startswith("tiny@HEAD~1 and tiny\n")
    assert ["decode.beam", "2", "5"] in cells_by_line(output)


def test_one_seed_of_another_revision_has_no_p_value(repository):
    """Git stores no translations, so lines cannot be resampled, and one seed is not enough."""
    output = compare(repository, "tiny@HEAD~1", "tiny")

    columns = ["corpus", "test set", "metric", "score at HEAD~1", "score now", "difference"]
    assert len(score_cells(output, "BLEU")) == len(columns)  # A seventh cell would be p.


def test_a_comparison_with_a_revision_changes_no_file(repository):
    compare(repository, "tiny@HEAD~1", "tiny")

    changed = run_command(repository, "git", "status", "--porcelain", "--untracked-files=no")
    assert changed == ""


def test_a_system_that_no_commit_changed_does_not_differ(repository):
    assert compare(repository, "small@HEAD", "small") == (
        "small@HEAD and small have the same settings, translations and scores\n"
    )


def test_a_changed_translation_with_the_same_score_is_still_compared(repository_copy):
    """Scores of two revisions can be equal although the translations differ.

    `compare` must print the table of scores, and not say that there is nothing to compare.
    """
    results = repository_copy / RESULTS
    content = results.read_text()
    sha256, *_ = re.findall(r'"system": "small",.*"hypotheses_sha256": "(\w+)"', content)
    sha256_of_other_translations = "0" * 64
    results.write_text(content.replace(sha256, sha256_of_other_translations))

    output = compare(repository_copy, "small@HEAD", "small")

    assert "\nScores\n" in output


def test_two_revisions_are_compared(repository):
    output = compare(repository, "tiny@HEAD@{0}", "tiny@HEAD~1")

    assert output.startswith("tiny@HEAD@{0} and tiny@HEAD~1\n")


def test_a_revision_without_a_system_means_the_system_of_the_other_argument(repository):
    assert compare(repository, "tiny", "@HEAD~1") == compare(repository, "tiny", "tiny@HEAD~1")


def test_a_revision_and_the_working_tree_are_compared_in_all_systems(repository):
    output = compare(repository, "@main~1", "@")

    titles = re.findall(r"^\w+@main~1 and \w+", output, re.M)
    assert titles == ["tiny@main~1 and tiny", "small@main~1 and small"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        pytest.param("tinny", "small", "no systems entry 'tinny'", id="misspelled first system"),
        pytest.param("HEAD", "small", "no systems entry 'HEAD'", id="revision without @"),
        pytest.param(
            "tiny", "smal@HEAD~1", "no systems entry 'smal'", id="misspelled second system"
        ),
        pytest.param(
            "tiny",
            "tiny@nowhere",
            "nowhere is not a Git revision, DVC experiment, file or folder",
            id="unknown revision",
        ),
        pytest.param(
            "tiny",
            "tiny",
            "tiny cannot be compared with itself. Name another system or revision",
            id="system with itself",
        ),
        pytest.param(
            "@",
            "@",
            "both arguments are @, the report of the working tree. Name a revision",
            id="working tree with itself",
        ),
        pytest.param(
            ",own",
            "tiny",
            "',own' does not name a system. Write SYSTEM, SYSTEM@REVISION or @REVISION",
            id="empty system name",
        ),
    ],
)
def test_wrong_arguments_are_explained_in_one_line(repository, first, second, message):
    error = compare(repository, first, second, status=1)

    assert error.count("\n") == 1
    assert message in error


def test_an_unknown_corpus_is_refused(repository):
    error = compare(repository, "tiny", "small", "--corpus", "new", status=1)

    assert "no corpora entry 'new'" in error


def replace_once(path, old, new):
    """Replace a text that a file contains."""
    content = path.read_text("utf-8")
    assert old in content
    path.write_text(content.replace(old, new, 1), "utf-8")


def test_damaged_settings_of_a_revision_are_reported_with_its_name(repository_copy):
    """The last commit contains settings in which `clip_norm` is misspelled as `clip`."""
    root = repository_copy
    resolved = root / RESOLVED
    resolved.write_text(resolved.read_text("utf-8").replace('"clip_norm"', '"clip"'), "utf-8")
    commit_all(root, "damaged")

    error = compare(root, "tiny@HEAD", "tiny", status=1)

    assert error.startswith("bleuprint: error: HEAD: reports/resolved.json is damaged: field runs.")


def test_a_revision_with_results_of_version_1_0_is_refused(repository_copy):
    """Version 1.0 stored the runs of an experiment with the key `cells`."""
    root = repository_copy
    replace_once(root / RESOLVED, '"runs": {', '"cells": {')
    commit_all(root, "version 1.0")

    error = compare(root, "tiny@HEAD", "tiny", status=1)

    assert error == (
        "bleuprint: error: HEAD: reports/resolved.json: bleuprint 1.0 wrote this result, with "
        "the key cells instead of runs. Run its experiment again with this version\n"
    )


def test_a_revision_whose_results_are_of_other_settings_is_refused(repository_copy):
    """Someone committed a beam of 1 before running the experiment with it.

    That commit still contains the results of a beam of 5, which must not pass as those of beam 1.
    """
    root = repository_copy
    replace_once(root / RESOLVED, '"beam": 5', '"beam": 1')
    commit_all(root, "new settings")

    error = compare(root, "tiny@HEAD", "tiny@HEAD~1", status=1)

    assert error == (
        "bleuprint: error: HEAD: reports/results.json was computed with another params.yaml. Name "
        "a revision that contains the results of its reports/resolved.json\n"
    )


def test_a_revision_without_settings_is_refused(repository_copy):
    """Reports/resolved.json contains the settings of a commit; the last commit deletes it."""
    root = repository_copy
    run_command(root, "git", "rm", "--quiet", RESOLVED)
    commit_all(root, "no settings")

    error = compare(root, "tiny@HEAD", "tiny", status=1)

    assert error.startswith("bleuprint: error: HEAD: reports/resolved.json: no such file")
