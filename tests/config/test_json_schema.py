"""The schema that editors check params.yaml with, by the reference validator of JSON Schema."""

import copy
import json

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from bleuprint.config.experiment import load_settings
from bleuprint.config.params_schema import params_schema
from bleuprint.runtime.errors import UserError
from root import ROOT

SCHEMA = params_schema()
PARAMS = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def test_the_committed_schema_is_that_of_the_settings():
    """After a change of settings or rules: bleuprint check --schema > docs/params.schema.json."""
    assert json.loads((ROOT / "docs" / "params.schema.json").read_text("utf-8")) == SCHEMA
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "recipe", sorted((ROOT / "recipes").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_recipe_is_valid_and_names_the_schema(recipe):
    text = recipe.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=docs/params.schema.json\n")
    Draft7Validator(SCHEMA).validate(YAML(typ="safe").load(text))


TINY, CORPUS = ("systems", "tiny"), ("corpora", "phrasebook-en-de")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("experiment",), "../escaped"),
        (("seeds",), [1, -1]),
        ((*TINY, "model", "d_modle"), 96),
        ((*TINY, "model", "heads"), 0),
        ((*TINY, "model", "dropout", "residual"), 1.0),  # below 1
        ((*TINY, "train", "optimizer", "betas"), [0.9, 0.98, 0.99]),
        ((*CORPUS, "filter", "lenght"), {"min": 1, "max": 2}),
        (("init_from",), {"small": {"folder": "models/tiny"}}),
        ((*TINY, "train", "init_from"), {"system": "small", "corpus": "phrasebook-en-de"}),
    ],
    ids=str,
)
def test_what_the_pipeline_refuses_the_schema_refuses(tmp_path, keys, value):
    document = copy.deepcopy(PARAMS)
    inner = document
    for key in keys[:-1]:
        inner = inner.setdefault(key, {})
    inner[keys[-1]] = value
    assert not Draft7Validator(SCHEMA).is_valid(document)
    (path := tmp_path / "params.yaml").write_text(json.dumps(document))
    with pytest.raises(UserError):
        load_settings(path, ROOT)


def test_what_rows_inherit_may_be_left_out_or_removed(tmp_path):
    document = copy.deepcopy(PARAMS)
    document["systems"]["small"] |= {"train": {"max_updates": None, "max_epochs": 3}}
    document["systems"]["small"]["corpora"] = {"phrasebook-en-de": {"decode": {"beam": 1}}}
    Draft7Validator(SCHEMA).validate(document)
    (path := tmp_path / "params.yaml").write_text(json.dumps(document))
    assert load_settings(path, ROOT).system_settings("small").train.max_updates is None


FILES = {"phrasebook": {"path": "inputs/external/a.de", "sha256": 64 * "a"}}


@pytest.mark.parametrize("setting", ["train", "model", "average", "decode"])
@pytest.mark.parametrize("place", ["row", "corpus"])
def test_a_system_has_translations_or_settings_of_a_training(tmp_path, place, setting):
    document = copy.deepcopy(PARAMS)
    online = {"about": "A", "translations": FILES, "corpora": {"phrasebook-en-de": {}}}
    document["systems"]["online"] = online
    Draft7Validator(SCHEMA).validate(document)
    (path := tmp_path / "params.yaml").write_text(json.dumps(document))
    assert list(load_settings(path, ROOT).external) == ["online"]
    both = {"translations": FILES, setting: {}}
    if place == "row":
        document["systems"]["online"] = {"about": "A"} | both
    else:
        document["systems"]["online"] = {"about": "A", "corpora": {"phrasebook-en-de": both}}
    assert not Draft7Validator(SCHEMA).is_valid(document)
    path.write_text(json.dumps(document))
    message = f"translations make online an external system, which cannot have {setting};"
    with pytest.raises(UserError, match=message):
        load_settings(path, ROOT)


def test_translations_that_are_inherited_may_be_removed(tmp_path):
    document = copy.deepcopy(PARAMS)
    removed = {"like": "online", "translations": None, "about": None}
    document["systems"]["online"] = {"about": "A", "translations": FILES}
    document["systems"]["online"]["corpora"] = {"phrasebook-en-de": {}}
    document["systems"]["trained"] = document["systems"]["tiny"] | removed
    Draft7Validator(SCHEMA).validate(document)
    (path := tmp_path / "params.yaml").write_text(json.dumps(document))
    assert load_settings(path, ROOT).trained_systems == ["tiny", "small", "trained"]
