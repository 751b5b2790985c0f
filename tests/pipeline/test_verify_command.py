"""The command `bleuprint verify OTHER` in a git repository: its output and its exit status."""

import os
import shutil
import subprocess
import sys

import pytest

import processes
from bleuprint.config.paths import Run
from reports_to_verify import TRAINED_WITH_OTHER_CODE, write_lock, write_report


def run_verify(root, other):
    """Run `bleuprint verify OTHER` in a project; return the process with status and output."""
    return processes.run_text((sys.executable, "-m", "bleuprint", "verify", other), root)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Return a git repository with a project in a subfolder, whose results are committed."""
    repository = tmp_path_factory.mktemp("committed") / "larger"
    project = write_report(repository / "project")
    write_lock(project)
    (project / "params.yaml").touch()  # By this file the project's folder is found.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment[f"GIT_{role}_NAME"] = "t@x"
        environment[f"GIT_{role}_EMAIL"] = "t@x"
    for command in (
        ["git", "init", "--quiet", str(repository)],
        ["dvc", "init", "--quiet", "--subdir"],
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "--message", "first"],
    ):
        subprocess.run(command, cwd=project, env=environment, check=True)
    return repository


@pytest.fixture
def committed(repository, tmp_path):
    """Return a copy of the project in `repository`, with its git repository."""
    shutil.copytree(repository, tmp_path / "larger")
    return tmp_path / "larger" / "project"


def test_verify_says_if_nothing_has_run_since_the_commit_it_compares_with(committed):
    """The results are the committed files themselves: the comparison proves nothing.

    A user who wants to reproduce the results still has to run the stages.
    """
    result = run_verify(committed, "HEAD")

    assert result.returncode == 0
    assert result.stdout.startswith(
        "here and HEAD: 2 results with the same bytes\n"
        "here, nothing has run: reports/ is the committed version. To run: make"
    )


def test_verify_ends_with_status_0_if_a_run_has_reproduced_the_results_of_the_commit(committed):
    """Git ignores scores.json, so this file shows that the stage score has run here."""
    results_folder = committed / Run("tiny", "news-en-de", 1).results_folder
    results_folder.mkdir(parents=True)
    (results_folder / "scores.json").touch()

    result = run_verify(committed, "HEAD")

    assert result.returncode == 0
    assert result.stdout == "here and HEAD: 2 results with the same bytes\n"


def test_verify_ends_with_status_5_if_a_run_has_other_results_than_the_commit(committed):
    """The commit has 33.0 BLEU for the system small; the new run has another label smoothing."""
    write_report(committed, bleu_of_small=33.4, **TRAINED_WITH_OTHER_CODE)
    write_lock(committed, smoothing=0.2)

    result = run_verify(committed, "HEAD")

    assert result.returncode == 5
    counts = "1 result with the same bytes, 1 different"
    assert result.stdout.startswith(f"here and HEAD: {counts}\n")


def test_verify_prints_control_characters_of_a_setting_as_spaces(committed):
    """They could move the cursor of a terminal, or begin a new line.

    The commit has the label smoothing 0.1.
    """
    write_report(committed, bleu_of_small=33.4, **TRAINED_WITH_OTHER_CODE)
    control_characters = "\r\x1c\u2028\x85\0\ufeff"
    write_lock(committed, smoothing=f"0.2{control_characters}")

    result = run_verify(committed, "HEAD")

    assert result.returncode == 5
    setting = "runs.small.news-en-de.train.label_smoothing"
    assert f"from train on: settings {setting} 0.2      and 0.1\n" in result.stdout


def assert_one_error_line(result, message):
    """Check that a command failed, printed only one line to standard error, and what it says."""
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_verify_refuses_the_results_of_another_experiment(committed, tmp_path):
    """The committed results are on the corpus news-en-de, so no two results can be compared."""
    other = write_report(tmp_path / "other", corpus="talks-en-fr")

    result = run_verify(committed, str(other))

    message = "and here are different experiments: they have no system, corpus, seed and test set"
    assert_one_error_line(result, message)


def test_verify_refuses_a_name_that_is_neither_a_git_revision_nor_a_file(committed):
    result = run_verify(committed, "nowhere")

    message = "is not a Git revision, DVC experiment, file or folder: unknown Git revision"
    assert_one_error_line(result, message)


def test_verify_refuses_a_folder_without_results(committed, tmp_path):
    result = run_verify(committed, str(tmp_path))

    message = "reports/results.json: no such file. Name a results.json, a release,"
    assert_one_error_line(result, message)
