"""Commands that ask change no file of the project, neither its content nor its time.

Not compared are the caches of the tools, which Git ignores: work/, .snakemake/, .dvc/tmp/, compiled
Python, and Git's index.
"""

import shutil
import signal
import time

import pytest

import micro
from bleuprint.runtime.regular_files import sha256_of

CACHES = {".git", "work", ".snakemake", "tmp", "__pycache__"}
QUESTIONS = [
    ("bleuprint", "plan"),
    ("bleuprint", "check"),
    ("bleuprint", "table"),
    ("bleuprint", "compare", "tiny", "wide"),
    ("bleuprint", "verify", "HEAD"),
    ("bleuprint", "inspect", "own"),
    ("bleuprint", "cite"),
    ("bleuprint", "reproduce", "--help"),
    ("snakemake", "--dry-run"),
    ("snakemake", "--dry-run", "--touch", "--forceall"),
]


def read_files(project):
    """Return the SHA-256 and the modification time of each file of a project, except caches."""
    files = {}
    for path in project.root.rglob("*"):
        relative_path = path.relative_to(project.root)
        if path.is_file() and not CACHES.intersection(relative_path.parts):
            files[str(relative_path)] = (sha256_of(path), path.stat().st_mtime_ns)
    return files


def git_status(project):
    """Return what Git says about changed and new files: nothing in a fresh clone."""
    return project.run("git", "status", "--porcelain")


@pytest.fixture(scope="module")
def shared_clone(by_dvc, tmp_path_factory):
    """Return a clone of a finished project after `dvc pull`. Not to be changed.

    It pulls from a copy of the project's cache.
    """
    root = tmp_path_factory.mktemp("shared") / "clone"
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(root))
    clone = micro.Project(root)
    shutil.copytree(by_dvc.root / "inputs", root / "inputs", dirs_exist_ok=True)
    shutil.copytree(by_dvc.root / ".dvc" / "cache", root / ".dvc" / "cache")
    clone.run("dvc", "checkout")
    return clone


@pytest.fixture
def clone_with_results(shared_clone, tmp_path):
    """Return a copy of the clone, with its modification times, which a test may change."""
    return shared_clone.copy(tmp_path / "clone")


def edit_learning_rate(project):
    """Change the learning rate of the system wide in params.yaml."""
    project.edit("params.yaml", "lr: 0.015", "lr: 0.011")


def kill_during_a_training(project):
    """Start `bleuprint reproduce`, and kill it when a new training has begun."""
    trainings_before = set(project.root.glob("work/trainings/*"))
    process = project.start("bleuprint", "reproduce")
    while set(project.root.glob("work/trainings/*")) == trainings_before:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    micro.kill(process, signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.fixture(params=["a clone with results", "an edit of params.yaml", "a run that was killed"])
def project(request, clone_with_results):
    """Return a project in a state in which users ask."""
    project = clone_with_results
    assert project.changed_stages() == set()
    if request.param == "an edit of params.yaml":
        edit_learning_rate(project)
    elif request.param == "a run that was killed":
        edit_learning_rate(project)
        kill_during_a_training(project)
    return project


def test_commands_that_only_show_something_change_no_file_of_the_project(project):
    """QUESTIONS are such commands, for example `bleuprint plan` and `snakemake --dry-run`.

    All of them run in the same project, since it takes long to make. `read_files` returns the
    SHA-256 and the modification time of each file.
    """
    html_report = "reports/index.html"
    files_before = read_files(project)
    status_before = git_status(project)
    assert "reports/resolved.json" in files_before
    assert html_report not in files_before

    for command in QUESTIONS:
        project.run(*command, status=None)

        files_after = read_files(project)
        if command == ("bleuprint", "table"):
            # It writes the HTML report, as its documentation says. Git ignores this file.
            files_after.pop(html_report, None)
            (project.root / html_report).unlink(missing_ok=True)
        assert files_after == files_before, command
        assert git_status(project) == status_before, command


def test_snakemake_has_nothing_to_run_in_a_clone_with_results(clone_with_results):
    """`git clone` gives all files the time of now, and Snakemake compares times by default.

    Git ignores the HTML report, so a clone lacks it. A dry run must not write it; a run does.
    """
    clone = clone_with_results
    html_report = clone.root / "reports/index.html"
    stages_out_of_date = clone.changed_stages()
    assert stages_out_of_date == set()

    dry_run_output = clone.snakemake("--dry-run")
    report_exists_after_dry_run = html_report.exists()
    output = clone.snakemake()

    assert "Nothing to be done" in dry_run_output
    assert not report_exists_after_dry_run
    assert "Nothing to be done" in output
    assert html_report.exists()
    assert git_status(clone) == ""


def test_a_dry_run_and_plan_list_the_stages_that_an_edit_changes(clone_with_results):
    """The learning rate of the system wide is edited.

    The stages of the system tiny, and `binarize`, which prepares the text, stay as they are.
    """
    clone = clone_with_results
    clone.snakemake()
    edit_learning_rate(clone)

    plan = clone.run("bleuprint", "plan")
    jobs = clone.snakemake("--dry-run")

    for stage in (
        "resolve",
        "train@wide",
        "average@wide",
        "translate@wide",
        "score@wide",
        "report",
    ):
        assert stage in plan
        assert f": {stage}" in jobs
    assert "@tiny" not in jobs
    assert ": binarize@" not in jobs


def test_a_dry_run_of_snakemake_keeps_outputs_that_dvc_computed_with_other_settings(reproduced):
    """The user tries a setting with DVC, then restores it.

    A real run of Snakemake would first remove the outputs of `filter`, which are out of date.
    """
    reproduced.edit("params.yaml", "length: {min: 1, max: 100}", "length: {min: 1, max: 5}")
    reproduced.run("dvc", "repro", "filter@own")
    reproduced.edit("params.yaml", "length: {min: 1, max: 5}", "length: {min: 1, max: 100}")
    files_before = read_files(reproduced)

    jobs = reproduced.snakemake("--dry-run")

    assert ": filter@own" in jobs
    assert read_files(reproduced) == files_before
