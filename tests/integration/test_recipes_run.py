"""Recipes whose text is embedded run from a clone, all others are dry-run."""

import json

import pytest
from ruamel.yaml import YAML

import micro
from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
PHRASEBOOK_RECIPES = [name for name in RECIPES if name.endswith("phrasebook")]


def write_brief_recipe(project, name):
    """Write a recipe to params.yaml with two updates for each training, and one seed.

    After two updates a model does not know when to end a translation, and would go on to the limit.
    The limit is therefore 8 tokens.
    """
    recipe = YAML(typ="safe").load(ROOT / "recipes" / f"{name}.yaml")
    recipe["seeds"] = [1]
    for system in recipe["systems"].values():
        train = system.setdefault("train", {})
        train |= {"max_updates": 2, "validate_interval": 2, "save_interval": 1}
        system.setdefault("decode", {}).update({"max_len_a": 0, "max_len_b": 8})
        limit_averaged_checkpoints(system)
    project.write("params.yaml", json.dumps(recipe))


def limit_averaged_checkpoints(system):
    """Average at most two checkpoints, since a training of two updates writes no more.

    A system without `average` averages five by default, or as many as the system that it is like.
    """
    average = system.setdefault("average", {})
    if average.get("last"):
        average["last"] = min(2, average["last"])
    elif "last" not in average and "like" not in system:
        average["last"] = 2


@pytest.mark.parametrize("name", ["toy-sentence", "copy", *PHRASEBOOK_RECIPES])
def test_a_recipe_with_embedded_text_runs_and_reports_all_its_systems(tmp_path, name):
    """The text of these recipes is in the package, so nothing is downloaded.

    `write_brief_recipe` shortens each training to two updates.
    """
    project = micro.make(tmp_path)
    write_brief_recipe(project, name)

    project.run("dvc", "repro", timeout=900)

    settings = load_settings(tmp_path / "params.yaml")
    systems_in_report = project.rows()
    assert systems_in_report == list(settings.trained_systems)
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


def test_snakemake_plans_every_recipe_up_to_its_report(tmp_path):
    """A dry run finds mistakes in a recipe or in the graph without downloading its text.

    All recipes use one project, since a new one takes longer than a dry run.
    """
    project = micro.make(tmp_path)
    for name in RECIPES:
        recipe = (ROOT / "recipes" / f"{name}.yaml").read_text("utf-8")
        project.write("params.yaml", recipe)

        plan = project.run("snakemake", "-n", "-c1")

        assert "This was a dry-run" in plan, name
        assert "report" in plan, name
