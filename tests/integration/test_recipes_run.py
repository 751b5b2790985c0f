"""Recipes whose text is embedded run from a clone, all others are dry-run.

With small texts and systems, each recipe translates its test sets as `bleuprint translate` does.
"""

import json
import os
import subprocess

import pytest
from ruamel.yaml import YAML

import micro
import small_recipes
import warm
from bleuprint.config.experiment import load
from root import ROOT

pytestmark = pytest.mark.slow

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
EMBEDDED = ("toy-sentence", "copy", *(name for name in RECIPES if name.endswith("phrasebook")))


def brief(name):
    """A recipe with two updates for each training, and one seed."""
    recipe = YAML(typ="safe").load(ROOT / "recipes" / f"{name}.yaml")
    for row in recipe["systems"].values():
        train, average = row.setdefault("train", {}), row.setdefault("average", {})
        train |= {"max_updates": 2, "validate_every": 2, "checkpoint_every": 1}
        if average.get("last", 5 if "like" not in row else None):
            average["last"] = min(2, average.get("last", 2))
    return json.dumps({**recipe, "seeds": [1]})


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_recipe_runs(tmp_path, name):
    project = micro.make(tmp_path)
    project.write("params.yaml", brief(name))
    project.run("dvc", "repro", timeout=900)
    assert project.rows() == list(load(tmp_path / "params.yaml").systems)
    assert project.changed() == set()


def test_every_recipe_is_dry_run(tmp_path):
    project = micro.make(tmp_path)
    for name in RECIPES:
        project.write("params.yaml", (ROOT / "recipes" / f"{name}.yaml").read_text("utf-8"))
        planned = project.run("snakemake", "-n", "-c1")
        assert "This was a dry-run" in planned and "report" in planned, name


@pytest.mark.parametrize("name", RECIPES)
def test_the_command_translates_as_the_pipeline_does(tmp_path, name):
    """Line by line, whatever the line: the text of test sets is odd (see small_recipes)."""
    project = micro.make(tmp_path)
    # the default in processes of its own, whose libraries read the variables of its arithmetic
    project.warm = name != "phrasebook"
    small_recipes.write(project, name)
    project.run("dvc", "repro", "translate", timeout=3600)  # twelve corpora of one recipe
    hypotheses = sorted(project.root.glob("results/*/*/1/hypotheses/test.*"))
    assert hypotheses
    for path in hypotheses:
        system, corpus = path.parts[-5:-3]
        test = path.name.removesuffix(path.suffix)
        sides = project.root.glob(f"data/split/{corpus}/{test}.*")
        (source,) = [side for side in sides if side.name != path.name]
        arguments = [f"--system={system}", f"--corpus={corpus}"]
        if source.suffix == ".src" and path.suffix == ".tgt" and test.count("-") >= 2:
            arguments.append(f"--direction={test.removeprefix('test.')[:5]}")
        found = translated(project, arguments, source.read_bytes())
        sources, expected = source.read_bytes().decode(), path.read_bytes().decode()
        lines = zip(sources.split("\n"), found.split("\n"), expected.split("\n"), strict=True)
        assert [line for line in lines if line[1] != line[2]] == []
        assert len(set(expected.split("\n"))) > 2


def translated(project, arguments, text):
    """What `bleuprint translate` prints for a text."""
    folder = f"{warm.folder()}{os.pathsep}" if project.warm else ""
    environment = {**project.environment, "PATH": folder + project.environment["PATH"]}
    command = ["bleuprint", "translate", *arguments]
    done = subprocess.run(
        command, cwd=project.root, env=environment, input=text, capture_output=True, timeout=240
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()
