"""Runs recipes one after the other from one commit, and collects what is committed of each.

    python -m tools.run_recipes FOLDER [RECIPE ...] [--commit v1.0.0]

FOLDER/RECIPE is a clone of the commit, with the extension and packages of this project's .venv, in
which `bleuprint reproduce` runs; its output goes to FOLDER/RECIPE.log. After a stop, the same
command continues: a finished stage is not run again, and a training continues from its last
checkpoint. When a recipe has finished, its report replaces reports/RECIPE here; for the default
experiment, also dvc.lock. Without names, every recipe with a committed report is run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bleuprint.config.embedded_texts import EMBEDDED
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import run_main
from tools.git_commands import clone_commit, git
from tools.readme_tables import DEFAULT

# The files of a report that are always committed: numbers, without sentences of the corpus.
NUMBERS = (
    "results.json",
    "metrics.json",
    "costs.csv",
    "training.csv",
    "validation.csv",
    "table.csv",
    "table.md",
    "table.tex",
)
# The HTML report quotes sentences, so it is committed only for texts that this project contains.
PAGE = "index.html"


def main() -> None:
    """Run the recipes of the command line, and exit with an error if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the clones, outside this project")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--commit", default="HEAD", help="the commit that all are run from")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    known_recipes = sorted(path.stem for path in root.glob("recipes/*.yaml"))
    for recipe in arguments.recipes:
        if recipe not in known_recipes:
            parser.error(f"no recipe {recipe}; there are: {', '.join(known_recipes)}")
    commit = git(root, "rev-parse", "--verify", f"{arguments.commit}^{{commit}}")
    failed = []
    for recipe in arguments.recipes or recipes_with_reports(root):
        start = time.monotonic()
        clone = arguments.folder.resolve() / recipe
        clone_commit(root, clone, commit)
        exit_status = reproduce(clone, recipe)
        minutes = (time.monotonic() - start) / 60
        outcome = "failed" if exit_status else "finished"
        print(f"{recipe}: {outcome}, {minutes:.0f} minutes", flush=True)
        if exit_status:
            failed.append(recipe)
        else:
            collect_report(clone, root, recipe)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their output: {arguments.folder}/RECIPE.log")


def recipes_with_reports(root: Path) -> list[str]:
    """Return the default experiment, then the recipes with a report in reports/."""
    reports = sorted(path.parent.name for path in root.glob("reports/*/results.json"))
    return [DEFAULT, *reports]


def reproduce(clone: Path, recipe: str) -> int:
    """Run a recipe in its clone, and write its output to RECIPE.log next to the clone.

    Args:
        clone: The folder of the clone.
        recipe: The recipe.

    Returns:
        The exit status of `bleuprint reproduce`.
    """
    shutil.copy(clone / "recipes" / f"{recipe}.yaml", clone / "params.yaml")
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(clone / "src"),
    }
    log_path = clone.with_name(f"{recipe}.log")
    with log_path.open("a", encoding="utf-8") as log:
        process = subprocess.run(
            [str(programs / "bleuprint"), "reproduce"],
            cwd=clone,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    return process.returncode


def collect_report(clone: Path, root: Path, recipe: str) -> None:
    """Copy the committed files of a report from the clone in which the recipe has run.

    The files of a recipe are committed in reports/RECIPE. For the default recipe, all files except
    the HTML report are in reports/ itself, and dvc.lock and the resolved settings are committed,
    too.

    Args:
        clone: The clone of the project.
        root: The folder of the project.
        recipe: The name of the recipe.
    """
    page_folder = root / "reports" / recipe
    page_folder.mkdir(exist_ok=True)
    numbers_folder = page_folder
    if recipe == DEFAULT:
        numbers_folder = root / "reports"
        shutil.copy(clone / "dvc.lock", root)
        shutil.copy(clone / "reports" / "resolved.json", numbers_folder)
    for name in NUMBERS:
        shutil.copy(clone / "reports" / name, numbers_folder)
    if has_only_embedded_texts(clone):
        shutil.copy(clone / "reports" / PAGE, page_folder)


def has_only_embedded_texts(clone: Path) -> bool:
    """Return whether all texts of an experiment are part of this project.

    Only then is its HTML report committed, since it quotes sentences.
    """
    settings = load_settings(clone / "params.yaml")
    for corpus in settings.corpora.values():
        for file in corpus.files.files_by_name().values():
            if file.url not in EMBEDDED:
                return False
    return True


if __name__ == "__main__":
    run_main(main)
