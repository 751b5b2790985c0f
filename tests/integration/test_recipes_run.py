"""Recipes whose text is embedded run from a clone, all others are dry-run."""

import json

import pytest
from ruamel.yaml import YAML

import micro
from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
EMBEDDED = ("toy-sentence", "copy", *(name for name in RECIPES if name.endswith("phrasebook")))


def brief(name):
    """A recipe with two updates for each training, one seed, and translations of at most 8 tokens.

    After two updates a model does not know when to end, and would translate to the limit.
    """
    recipe = YAML(typ="safe").load(ROOT / "recipes" / f"{name}.yaml")
    for row in recipe["systems"].values():
        train, average = row.setdefault("train", {}), row.setdefault("average", {})
        row.setdefault("decode", {}).update({"max_len_a": 0, "max_len_b": 8})
        train |= {"max_updates": 2, "validate_interval": 2, "save_interval": 1}
        if average.get("last", 5 if "like" not in row else None):
            average["last"] = min(2, average.get("last", 2))
    return json.dumps({**recipe, "seeds": [1]})


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_recipe_runs(tmp_path, name):
    project = micro.make(tmp_path)
    project.write("params.yaml", brief(name))
    project.run("dvc", "repro", timeout=900)
    assert project.rows() == list(load_settings(tmp_path / "params.yaml").trained_systems)
    assert project.changed() == set()


def test_every_recipe_is_dry_run(tmp_path):
    project = micro.make(tmp_path)
    for name in RECIPES:
        project.write("params.yaml", (ROOT / "recipes" / f"{name}.yaml").read_text("utf-8"))
        planned = project.run("snakemake", "-n", "-c1")
        assert "This was a dry-run" in planned and "report" in planned, name
