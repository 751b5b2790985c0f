"""The script that runs all recipes: its clones, and what it takes from them."""

import shutil
import subprocess

import pytest

from root import ROOT
from tools.git_commands import git
from tools.run_recipes import collect_report, make_clone, recipes_with_reports

pytestmark = pytest.mark.slow

# What is committed of every report.
NUMBERS = {
    "results.json",
    "metrics.json",
    "costs.csv",
    "training.csv",
    "validation.csv",
    "table.csv",
    "table.md",
    "table.tex",
}


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


def text_of(name):
    """The content of a file that a run writes."""
    return f"{name} of the run\n"


def run_in(clone, recipe):
    """Write what a run of a recipe leaves in its clone."""
    shutil.copy(clone / "recipes" / f"{recipe}.yaml", clone / "params.yaml")
    for name in NUMBERS | {"index.html", "resolved.json"}:
        (clone / "reports" / name).write_text(text_of(name))
    (clone / "dvc.lock").write_text(text_of("dvc.lock"))


def collected(project, folder, recipe):
    """Run a recipe in a clone, collect its report, and return the clone.

    Args:
        project: The project, into whose reports/ the report is copied.
        folder: The folder for the clone.
        recipe: The name of the recipe.
    """
    commit = git(project, "rev-parse", "HEAD")
    clone = folder / recipe
    make_clone(project, clone, commit)
    run_in(clone, recipe)
    collect_report(clone, project, recipe)
    return clone


def files_of_run(folder):
    """Return the names of the files in a folder that a run has written."""
    names = set()
    for path in folder.iterdir():
        if path.is_file() and path.read_text() == text_of(path.name):
            names.add(path.name)
    return names


def test_a_clone_has_what_was_built(project, tmp_path):
    clone = tmp_path / "copy"
    make_clone(project, clone, git(project, "rev-parse", "HEAD"))
    assert (clone / "src" / "_bleuprint_native.so").read_text() == "built here\n"


def test_a_clone_of_the_commit_is_used_again(project, tmp_path):
    commit = git(project, "rev-parse", "HEAD")
    clone = tmp_path / "copy"
    make_clone(project, clone, commit)
    (clone / "begun").write_text("")
    make_clone(project, clone, commit)
    assert (clone / "begun").exists()


def test_a_clone_of_another_commit_is_refused(project, tmp_path):
    commit = git(project, "rev-parse", "HEAD")
    clone = tmp_path / "copy"
    make_clone(project, clone, commit)
    with pytest.raises(SystemExit, match=f"copy: of commit {commit[:10]}, not 0000000000: remove"):
        make_clone(project, clone, 40 * "0")


def test_the_default_and_recipes_with_a_report_are_run(project):
    assert recipes_with_reports(project) == ["phrasebook", "copy", "course-multi30k"]


def test_of_an_embedded_text_the_numbers_and_the_page_are_collected(project, tmp_path):
    """The text of the recipe copy is part of the package."""
    collected(project, tmp_path / "runs", "copy")
    assert files_of_run(project / "reports" / "copy") == NUMBERS | {"index.html"}


def test_of_a_text_of_others_the_numbers_alone_are_collected(project, tmp_path):
    """The page would show sentences of Multi30k."""
    collected(project, tmp_path / "runs", "course-multi30k")
    assert files_of_run(project / "reports" / "course-multi30k") == NUMBERS


def test_dvc_lock_of_another_recipe_than_the_default_is_not_collected(project, tmp_path):
    clone = collected(project, tmp_path / "runs", "copy")
    assert (clone / "dvc.lock").exists()
    assert not (project / "dvc.lock").exists()


def test_numbers_of_the_default_experiment_are_in_reports_itself(project, tmp_path):
    collected(project, tmp_path / "runs", "phrasebook")
    assert files_of_run(project / "reports") == NUMBERS | {"resolved.json"}


def test_the_page_of_the_default_experiment_is_in_its_folder(project, tmp_path):
    collected(project, tmp_path / "runs", "phrasebook")
    assert files_of_run(project / "reports" / "phrasebook") == {"index.html"}


def test_dvc_lock_of_the_default_experiment_is_collected(project, tmp_path):
    collected(project, tmp_path / "runs", "phrasebook")
    assert (project / "dvc.lock").read_text() == "dvc.lock of the run\n"
