"""The script that runs all recipes: its clones, and the reports that it collects from them."""

import shutil
import subprocess

import pytest

from bleuprint.runtime.errors import UserError
from root import ROOT
from tools.git_commands import clone_commit, git
from tools.run_recipes import collect_report, recipes_with_reports

pytestmark = pytest.mark.slow

# The files of every report, without text of the corpus.
NUMBER_FILES = {
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
    """A repository with a commit, reports of two recipes, and a C++ extension that Git ignores."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    shutil.copytree(ROOT / "corpora", root / "corpora")
    shutil.copytree(ROOT / "recipes", root / "recipes")
    for folder in ("reports/copy", "reports/course-multi30k"):
        (root / folder).mkdir(parents=True)
        (root / folder / "results.json").write_text("old\n")
    (root / "src" / "readme.txt").write_text("first\n")
    commit_all(root)
    (root / "src" / "_bleuprint_native.so").write_text("built here\n")
    return root


def commit_all(root):
    """Make a folder a Git repository with one commit of all its files."""
    git_command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root)]
    subprocess.run([*git_command, "init", "-q"], check=True)
    subprocess.run([*git_command, "add", "-A"], check=True)
    subprocess.run([*git_command, "commit", "-qm", "first"], check=True)


def content_by_run(name):
    """Return the content that `write_reports_of_run` gives a file."""
    return f"{name} of the run\n"


def write_reports_of_run(clone, recipe):
    """Write the files that a run of a recipe leaves in its clone."""
    shutil.copy(clone / "recipes" / f"{recipe}.yaml", clone / "params.yaml")
    for name in NUMBER_FILES | {"index.html", "resolved.json"}:
        (clone / "reports" / name).write_text(content_by_run(name))
    (clone / "dvc.lock").write_text(content_by_run("dvc.lock"))


def run_and_collect(project, folder, recipe):
    """Run a recipe in a clone, collect its report, and return the clone.

    Args:
        project: The project, into whose reports/ the report is copied.
        folder: The folder for the clone.
        recipe: The name of the recipe.
    """
    commit = git(project, "rev-parse", "HEAD")
    clone = folder / recipe
    clone_commit(project, clone, commit)
    write_reports_of_run(clone, recipe)
    collect_report(clone, project, recipe)
    return clone


def files_of_run(folder):
    """Return the names of the files in a folder that a run has written."""
    names = set()
    for path in folder.iterdir():
        if path.is_file() and path.read_text() == content_by_run(path.name):
            names.add(path.name)
    return names


def test_a_clone_has_the_extension_that_was_built_in_the_project(project, tmp_path):
    """The project's src contains _bleuprint_native.so, a compiled C++ extension.

    Git ignores it, and compiling it again in the clone of each recipe would take long.
    """
    clone = tmp_path / "copy"

    clone_commit(project, clone, git(project, "rev-parse", "HEAD"))

    assert (clone / "src" / "_bleuprint_native.so").read_text() == "built here\n"


def test_a_clone_of_the_same_commit_is_kept_with_its_files(project, tmp_path):
    """Each recipe runs in a clone of its own. A run that was interrupted continues there."""
    commit = git(project, "rev-parse", "HEAD")
    clone = tmp_path / "copy"
    clone_commit(project, clone, commit)
    (clone / "result-of-interrupted-run").write_text("")

    clone_commit(project, clone, commit)

    assert (clone / "result-of-interrupted-run").exists()


def test_a_clone_of_another_commit_is_refused(project, tmp_path):
    """The reports of a release must all be computed with the code of one commit."""
    commit = git(project, "rev-parse", "HEAD")
    clone = tmp_path / "copy"
    clone_commit(project, clone, commit)
    other_commit = 40 * "0"

    with pytest.raises(
        UserError, match=rf"copy is a clone of commit {commit[:10]}, not 0000000000\. Remove it"
    ):
        clone_commit(project, clone, other_commit)


def test_the_default_recipe_and_recipes_with_a_committed_report_are_run(project):
    """The default recipe is phrasebook."""
    assert recipes_with_reports(project) == ["phrasebook", "copy", "course-multi30k"]


def test_numbers_and_page_are_collected_for_a_recipe_with_embedded_text(project, tmp_path):
    """The text of the recipe copy is part of the package, so the page may quote it."""
    run_and_collect(project, tmp_path / "runs", "copy")

    assert files_of_run(project / "reports" / "copy") == NUMBER_FILES | {"index.html"}


def test_only_numbers_are_collected_for_a_recipe_with_a_text_of_others(project, tmp_path):
    """The page would show sentences of Multi30k, which may not be published."""
    run_and_collect(project, tmp_path / "runs", "course-multi30k")

    assert files_of_run(project / "reports" / "course-multi30k") == NUMBER_FILES


def test_dvc_lock_is_not_collected_for_a_recipe_other_than_the_default(project, tmp_path):
    clone = run_and_collect(project, tmp_path / "runs", "copy")

    assert (clone / "dvc.lock").exists()
    assert not (project / "dvc.lock").exists()


def test_numbers_of_the_default_recipe_are_collected_in_reports_itself(project, tmp_path):
    run_and_collect(project, tmp_path / "runs", "phrasebook")

    assert files_of_run(project / "reports") == NUMBER_FILES | {"resolved.json"}


def test_the_page_of_the_default_recipe_is_collected_in_a_folder(project, tmp_path):
    run_and_collect(project, tmp_path / "runs", "phrasebook")

    assert files_of_run(project / "reports" / "phrasebook") == {"index.html"}


def test_dvc_lock_of_the_default_recipe_is_collected(project, tmp_path):
    run_and_collect(project, tmp_path / "runs", "phrasebook")

    assert (project / "dvc.lock").read_text() == "dvc.lock of the run\n"
