"""The script that runs all recipes: its clones, and what it takes from them."""

import shutil
import subprocess

import pytest

from root import ROOT
from tools.git_commands import git
from tools.run_recipes import NUMBERS, cloned, collect, committed

pytestmark = pytest.mark.slow

MADE = {name: f"{name} of the run\n" for name in (*NUMBERS, "index.html", "resolved.json")}


@pytest.fixture
def project(tmp_path):
    """A repository with a commit, an extension that is not committed, and corpora/."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    shutil.copytree(ROOT / "corpora", root / "corpora")
    shutil.copytree(ROOT / "recipes", root / "recipes")
    for folder in ("reports/copy", "reports/course-multi30k"):
        (root / folder).mkdir(parents=True)
        (root / folder / "results.json").write_text("old\n")
    (root / "src" / "readme.txt").write_text("first\n")
    run = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root))
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*run, *command], check=True)
    (root / "src" / "_bleuprint_native.so").write_text("built here\n")
    return root


def run_in(clone, recipe):
    """What a run of a recipe leaves."""
    shutil.copy(clone / "recipes" / f"{recipe}.yaml", clone / "params.yaml")
    for name, text in MADE.items():
        (clone / "reports" / name).write_text(text)
    (clone / "dvc.lock").write_text("lock of the run\n")


def test_a_clone_has_the_commit_and_what_was_built(project, tmp_path):
    commit = git(project, "rev-parse", "HEAD")
    clone = cloned(project, tmp_path / "runs" / "copy", commit)
    assert (clone / "src" / "_bleuprint_native.so").read_text() == "built here\n"
    (clone / "begun").write_text("")
    assert (cloned(project, clone, commit) / "begun").exists()  # goes on
    with pytest.raises(SystemExit, match=f"copy: of commit {commit[:10]}, not 0000000000: remove"):
        cloned(project, clone, 40 * "0")


def test_numbers_are_taken_and_only_pages_of_embedded_text(project, tmp_path):
    assert committed(project) == ["phrasebook", "copy", "course-multi30k"]
    for recipe in ("copy", "course-multi30k"):
        clone = cloned(project, tmp_path / "runs" / recipe, git(project, "rev-parse", "HEAD"))
        run_in(clone, recipe)
        collect(clone, project, recipe)
        pages = ["index.html"] if recipe == "copy" else []
        taken = {path.name: path.read_text() for path in (project / "reports" / recipe).iterdir()}
        assert taken == {name: MADE[name] for name in (*NUMBERS, *pages)}
    assert not (project / "dvc.lock").exists()


def test_the_default_experiment_is_in_reports_itself(project, tmp_path):
    clone = cloned(project, tmp_path / "runs" / "phrasebook", git(project, "rev-parse", "HEAD"))
    run_in(clone, "phrasebook")
    collect(clone, project, "phrasebook")
    there = {name for name in MADE if (project / "reports" / name).exists()}
    assert there == {*NUMBERS, "resolved.json"}
    assert (project / "reports" / "phrasebook" / "index.html").read_text() == MADE["index.html"]
    assert (project / "dvc.lock").read_text() == "lock of the run\n"
