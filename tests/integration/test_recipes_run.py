"""Recipes whose text is embedded run from a clone, all others are dry-run."""

import re
from pathlib import Path

import pytest

import micro
from bleuprint.config.experiment import load
from root import ROOT

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
PHRASEBOOK = (
    "phrasebook",
    "table3-phrasebook",
    "ablations-phrasebook",
    "cleaning-phrasebook",
    "back-translation-phrasebook",
)
EMBEDDED = ("toy-sentence", "copy", *PHRASEBOOK)


def brief(name: str) -> str:
    """A recipe with two updates for each training, and one seed."""
    text = (ROOT / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(max_updates|validate_every|checkpoint_every): \d+", r"\1: 2", text)
    text = text.replace("checkpoint_every: 2", "checkpoint_every: 1")
    text = re.sub(r"average: \{last: ([3-9]|\d\d)", "average: {last: 2", text)
    return re.sub(r"seeds: \[.*\]", "seeds: [1]", text)


@pytest.mark.slow
@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_recipe_runs(tmp_path: Path, name: str) -> None:
    project = micro.make(tmp_path)
    project.write("params.yaml", brief(name))
    project.run("dvc", "repro", timeout=900)
    assert project.rows() == list(load(tmp_path / "params.yaml").systems)
    assert project.changed() == set()


@pytest.mark.slow
def test_every_recipe_is_dry_run(tmp_path: Path) -> None:
    project = micro.make(tmp_path)
    for name in RECIPES:
        project.write("params.yaml", (ROOT / "recipes" / f"{name}.yaml").read_text("utf-8"))
        planned = project.run("snakemake", "-n", "-c1")
        assert "This was a dry-run" in planned and "report" in planned, name
