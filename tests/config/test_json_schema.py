"""The schema that editors check params.yaml with, by the reference validator of JSON Schema."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from bleuprint.config.experiment import Settings
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_schema import json_schema
from bleuprint.runtime.schema import build
from root import ROOT

SCHEMA = json_schema(Settings)
PARAMS = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))


def test_the_committed_schema_is_that_of_the_settings() -> None:
    """After a change of settings or rules: bleuprint schema > docs/params.schema.json."""
    assert json.loads((ROOT / "docs" / "params.schema.json").read_text("utf-8")) == SCHEMA
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "recipe", sorted((ROOT / "recipes").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_recipe_is_valid_and_names_the_schema(recipe: Path) -> None:
    text = recipe.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=docs/params.schema.json\n")
    Draft7Validator(SCHEMA).validate(YAML(typ="safe").load(text))


TINY, CORPUS = ("systems", "tiny"), ("corpora", "phrasebook-en-de")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("experiment",), "../escaped"),
        (("experiment",), "x" * 101),
        (("seeds",), [1, -1]),
        (("seeds",), ["one"]),
        ((*TINY, "model", "d_modle"), 96),
        ((*TINY, "model", "heads"), 0),
        ((*TINY, "model", "heads"), 2.5),
        ((*TINY, "model", "bias"), 1),
        ((*TINY, "model", "norm"), "middle"),
        ((*TINY, "model", "dropout", "residual"), 1.0),  # below 1
        ((*TINY, "train", "optimizer", "betas"), [0.9]),
        ((*TINY, "train", "optimizer", "betas"), [0.9, 0.98, 0.99]),
        ((*TINY, "decode", "beam"), None),
        ((*CORPUS, "filter", "lenght"), {"min": 1, "max": 2}),
        ((*CORPUS, "filter", "length"), {"min": 1}),
        ((*CORPUS, "clean", "unicode", "form"), "nfc"),
        ((*CORPUS, "files", "train", "a b"), {}),
        ((*CORPUS, "dedup"), []),
    ],
    ids=str,
)
def test_what_the_pipeline_refuses_the_schema_refuses(keys: tuple[str, ...], value: Any) -> None:
    document = copy.deepcopy(PARAMS)
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    assert not Draft7Validator(SCHEMA).is_valid(document)
    with pytest.raises(UserError):
        build(Settings, document, Path("params.yaml"))


def test_optional_settings_may_be_left_out_or_empty() -> None:
    for change in ({"max_updates": None, "max_epochs": 3}, {"max_epochs": 3}):
        document = copy.deepcopy(PARAMS)
        document["systems"]["tiny"]["train"] |= change
        Draft7Validator(SCHEMA).validate(document)
        build(Settings, document, Path("params.yaml"))
