"""Runs recipes one after the other from one commit, and collects what is committed of each.

    python -m tools.run_recipes FOLDER [RECIPE ...] [--commit v1.0.0]

FOLDER/RECIPE is a clone of the commit, with the extension and packages of this project's .venv, in
which `bleuprint reproduce` runs; its output is in FOLDER/RECIPE.log. The same command goes on after
a stop: a finished stage is not run again, a training continues from its last checkpoint. When a
recipe has finished, its report replaces reports/RECIPE here; of the default experiment, also
dvc.lock. Without names, every recipe with a committed report is run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.corpus_files import EMBEDDED
from bleuprint.config.experiment import load_settings
from bleuprint.runtime.errors import run_main
from tools.git_commands import git
from tools.readme_tables import DEFAULT

# What is committed of a report: numbers, and no sentence of the corpus.
NUMBERS = (
    *("results.json", "metrics.json", "costs.csv", "training.csv", "validation.csv"),
    *("table.csv", "table.md", "table.tex"),
)
PAGE = "index.html"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of the clones, outside this project")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    parser.add_argument("--commit", default="HEAD", help="that all are run from")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    known = {path.stem for path in root.glob("recipes/*.yaml")}
    if unknown := ", ".join(sorted({*arguments.recipes} - known)):
        parser.error(f"no recipe {unknown}; there are: {', '.join(sorted(known))}")
    commit = git(root, "rev-parse", "--verify", f"{arguments.commit}^{{commit}}")
    failed = list[str]()
    for recipe in arguments.recipes or committed(root):
        began = time.monotonic()
        clone = cloned(root, arguments.folder.resolve() / recipe, commit)
        status = reproduced(clone, recipe)
        minutes = (time.monotonic() - began) / 60
        print(f"{recipe}: {'failed' if status else 'finished'}, {minutes:.0f} minutes", flush=True)
        if status:
            failed.append(recipe)
        else:
            collect(clone, root, recipe)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; their output: {arguments.folder}/RECIPE.log")


def committed(root: Path) -> list[str]:
    """The default experiment, and the recipes with a report in reports/."""
    reports = sorted(path.parent.name for path in root.glob("reports/*/results.json"))
    return [DEFAULT, *reports]


def cloned(root: Path, clone: Path, commit: str) -> Path:
    """The clone, made if it is not there; exits if it is of another commit."""
    if not clone.exists():
        partial = clone.with_name(f"{clone.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        git(root, "clone", "--quiet", "--no-checkout", str(root), str(partial))
        git(partial, "checkout", "--quiet", "--detach", commit)
        # the library of native functions and its checksum
        for path in root.glob("src/_bleuprint_native*"):
            shutil.copy(path, partial / "src")
        partial.rename(clone)
    if (found := git(clone, "rev-parse", "HEAD")) != commit:
        sys.exit(f"{clone}: of commit {found[:10]}, not {commit[:10]}: remove it")
    return clone


def reproduced(clone: Path, recipe: str) -> int:
    """Run the recipe; the exit status."""
    shutil.copy(clone / "recipes" / f"{recipe}.yaml", clone / "params.yaml")
    own = Path(sys.executable).parent
    paths = {"PATH": f"{own}:{os.environ['PATH']}", "PYTHONPATH": str(clone / "src")}
    with clone.with_name(f"{recipe}.log").open("a", encoding="utf-8") as log:
        command = [str(own / "bleuprint"), "reproduce"]
        made = subprocess.run(
            command, cwd=clone, env=os.environ | paths, stdout=log, stderr=subprocess.STDOUT
        )
    return made.returncode


def collect(clone: Path, root: Path, recipe: str) -> None:
    """Copy what is committed of a report: its numbers, and the page of an embedded corpus."""
    of_default = recipe == DEFAULT
    target = root / "reports" / recipe
    target.mkdir(exist_ok=True)
    for name in NUMBERS:
        shutil.copy(clone / "reports" / name, target.parent / name if of_default else target)
    for name in ("dvc.lock", "reports/resolved.json") if of_default else ():
        shutil.copy(clone / name, root / name)
    if all(url in EMBEDDED for url in urls(clone)):
        shutil.copy(clone / "reports" / PAGE, target)


def urls(clone: Path) -> Iterator[str | None]:
    """Those of all texts of an experiment; None for a file of the user's."""
    for corpus in load_settings(clone / "params.yaml").corpora.values():
        yield from (file.url for file in corpus.files.files_by_name().values())


if __name__ == "__main__":
    run_main(main)
