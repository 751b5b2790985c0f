"""Commands that ask change no file of the project, neither its content nor its time.

Left out are the caches of the tools, which Git ignores: work/, .snakemake/, .dvc/tmp/, compiled
Python, and Git's own index.
"""

import shutil
import signal
import time

import pytest

import micro
from bleuprint.runtime.files import sha256_of

CACHES = (".git", "work", ".snakemake", "tmp", "__pycache__")
PAGE = "reports/index.html"
EDIT = "lr: 0.015", "lr: 0.011"
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


def files(project):
    """The SHA-256 and the modification time of each file that is in no cache."""
    return {
        str(path.relative_to(project.root)): (sha256_of(path), path.stat().st_mtime_ns)
        for path in project.root.rglob("*")
        if path.is_file() and not {*path.relative_to(project.root).parts} & {*CACHES}
    }


def clone_with_results(by_dvc, root):
    """A clone after `dvc pull`, here from a copy of the first project's cache."""
    by_dvc.run("git", "clone", "--quiet", str(by_dvc.root), str(root))
    clone = micro.Project(root)
    shutil.copytree(by_dvc.root / "inputs", root / "inputs", dirs_exist_ok=True)
    shutil.copytree(by_dvc.root / ".dvc" / "cache", root / ".dvc" / "cache")
    clone.run("dvc", "checkout")
    return clone


def stop_in_a_training(project, how):
    """Edit a setting, and kill `make reproduce` while it trains."""
    project.edit("params.yaml", *EDIT)
    process = project.start("bleuprint", "reproduce")
    before = {path.name for path in project.root.glob("work/trainings/*")}
    while {path.name for path in project.root.glob("work/trainings/*")} == before:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    micro.kill(process, how)
    process.communicate(timeout=60)


@pytest.fixture(params=["a clone with results", "an edit of params.yaml", "a run that was killed"])
def project(request, by_dvc, tmp_path):
    project = clone_with_results(by_dvc, tmp_path / "clone")
    assert project.changed() == set()
    if request.param == "an edit of params.yaml":
        project.edit("params.yaml", *EDIT)
    elif request.param == "a run that was killed":
        stop_in_a_training(project, signal.SIGKILL)
    return project


def test_questions_change_nothing(project):
    before, status = files(project), project.run("git", "status", "--porcelain")
    assert "reports/resolved.json" in before and PAGE not in before
    for question in QUESTIONS:
        project.run(*question, status=None)
        now = files(project)
        if question[1] == "table":  # its page, which Git ignores, is documented
            now.pop(PAGE, None)
            (project.root / PAGE).unlink(missing_ok=True)
        assert now == before, question
        assert project.run("git", "status", "--porcelain") == status, question


def test_a_pulled_clone_has_nothing_to_run_for_snakemake(by_dvc, tmp_path):
    """By modification times, all jobs of a clone would run."""
    clone = clone_with_results(by_dvc, tmp_path / "clone")
    assert clone.changed() == set()
    assert "Nothing to be done" in clone.snakemake("--dry-run")
    assert not (clone.root / PAGE).exists()
    assert "Nothing to be done" in clone.snakemake()
    assert (clone.root / PAGE).exists()
    assert clone.run("git", "status", "--porcelain") == ""
    clone.edit("params.yaml", *EDIT)
    planned = clone.run("bleuprint", "plan")
    jobs = clone.snakemake("--dry-run")
    for kind in ("resolve", "train@wide", "average@wide", "translate@wide", "score@wide", "report"):
        assert f": {kind}" in jobs and kind in planned
    assert "@tiny" not in jobs and ": binarize@" not in jobs


def test_a_trial_by_dvc_changes_no_time_in_a_dry_run(reproduced):
    """Outputs of other settings, with filtering statistics that Snakemake would have removed."""
    reproduced.edit("params.yaml", "length: {min: 1, max: 100}", "length: {min: 1, max: 5}")
    reproduced.run("dvc", "repro", "filter@own")
    reproduced.edit("params.yaml", "length: {min: 1, max: 5}", "length: {min: 1, max: 100}")
    before = files(reproduced)
    assert ": filter@own" in reproduced.snakemake("--dry-run")
    assert files(reproduced) == before
