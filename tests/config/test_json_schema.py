"""The JSON schema with which editors check params.yaml, against a validator of JSON Schema.

What the schema refuses must be what `load_settings` refuses.
"""

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
# It has the systems `tiny` and `small`, and the corpus `phrasebook-en-de`.
PARAMS = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
TRANSLATIONS = {"phrasebook": {"path": "inputs/external/a.de", "sha256": 64 * "a"}}


@pytest.fixture
def params():
    """Return the params.yaml of this project as nested dicts, which a test may change."""
    return copy.deepcopy(PARAMS)


def write_params(folder, params):
    """Write nested dicts to params.yaml as JSON, which is valid YAML; return its path."""
    path = folder / "params.yaml"
    path.write_text(json.dumps(params))
    return path


def test_the_committed_schema_is_up_to_date():
    """After a change of settings or rules: bleuprint check --schema > docs/params.schema.json."""
    committed = json.loads((ROOT / "docs" / "params.schema.json").read_text("utf-8"))

    assert committed == SCHEMA


def test_the_schema_is_valid():
    Draft7Validator.check_schema(SCHEMA)


RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_the_schema_accepts_every_recipe(recipe):
    Draft7Validator(SCHEMA).validate(YAML(typ="safe").load(recipe.read_text(encoding="utf-8")))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_tells_editors_where_the_schema_is(recipe):
    text = recipe.read_text(encoding="utf-8")

    assert text.startswith("# yaml-language-server: $schema=docs/params.schema.json\n")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("experiment", "../escaped", id="experiment outside the folder"),
        pytest.param("seeds", [1, -1], id="negative seed"),
        pytest.param("systems.tiny.model.d_modle", 96, id="misspelled setting of model"),
        pytest.param("systems.tiny.model.heads", 0, id="heads below 1"),
        pytest.param("systems.tiny.model.dropout.residual", 1.0, id="dropout of 1"),
        pytest.param("systems.tiny.train.optimizer.betas", [0.9, 0.98, 0.99], id="three betas"),
        pytest.param(
            "corpora.phrasebook-en-de.filter.lenght", {"min": 1, "max": 2}, id="misspelled rule"
        ),
        pytest.param(
            "init_from",
            {"small": {"folder": "models/tiny"}},
            id="init_from a folder without checkpoint",
        ),
        pytest.param(
            "systems.tiny.train.init_from",
            {"system": "small", "corpus": "phrasebook-en-de"},
            id="system and corpus for init_from",
        ),
    ],
)
def test_schema_and_pipeline_refuse_the_same_value(tmp_path, params, key, value):
    """An editor checks params.yaml by the JSON schema while the user types.

    `params` is a valid params.yaml; each case sets one key to a wrong value.
    """
    *outer_keys, last_key = key.split(".")
    mapping = params
    for outer_key in outer_keys:
        mapping = mapping.setdefault(outer_key, {})
    mapping[last_key] = value

    assert not Draft7Validator(SCHEMA).is_valid(params)
    with pytest.raises(UserError):
        load_settings(write_params(tmp_path, params), ROOT)


def test_schema_and_pipeline_accept_null_for_a_setting_that_is_not_inherited(tmp_path, params):
    """max_updates is null, which is the same as a missing key: max_epochs ends the training."""
    params["systems"]["small"]["train"] = {"max_updates": None, "max_epochs": 3}
    params["systems"]["small"]["corpora"] = {"phrasebook-en-de": {"decode": {"beam": 1}}}

    Draft7Validator(SCHEMA).validate(params)
    settings = load_settings(write_params(tmp_path, params), ROOT)
    assert settings.system_settings("small").train.max_updates is None


def test_schema_and_pipeline_accept_a_system_with_translations_instead_of_training(
    tmp_path, params
):
    """Such a system is external: its translations were made elsewhere."""
    params["systems"]["online"] = {
        "about": "A",
        "translations": TRANSLATIONS,
        "corpora": {"phrasebook-en-de": {}},
    }

    Draft7Validator(SCHEMA).validate(params)
    settings = load_settings(write_params(tmp_path, params), ROOT)
    assert list(settings.external) == ["online"]


@pytest.mark.parametrize("setting", ["train", "model", "average", "decode"])
@pytest.mark.parametrize("is_on_one_corpus", [False, True], ids=["system", "on a corpus"])
def test_schema_and_pipeline_refuse_a_system_with_translations_and_training(
    tmp_path, params, is_on_one_corpus, setting
):
    """Translations made elsewhere cannot depend on the settings of a training."""
    translations_and_training = {"translations": TRANSLATIONS, setting: {}}
    if is_on_one_corpus:
        corpora = {"phrasebook-en-de": translations_and_training}
        params["systems"]["online"] = {"about": "A", "corpora": corpora}
    else:
        params["systems"]["online"] = {"about": "A"} | translations_and_training

    assert not Draft7Validator(SCHEMA).is_valid(params)
    message = f"it is an external system and cannot have {setting}."
    with pytest.raises(UserError, match=message):
        load_settings(write_params(tmp_path, params), ROOT)


def test_schema_and_pipeline_accept_null_for_inherited_translations(tmp_path, params):
    """`trained` is like an external system, but has the settings of `tiny` for its training."""
    params["systems"]["online"] = {
        "about": "A",
        "translations": TRANSLATIONS,
        "corpora": {"phrasebook-en-de": {}},
    }
    without_translations = {"like": "online", "translations": None, "about": None}
    params["systems"]["trained"] = params["systems"]["tiny"] | without_translations

    Draft7Validator(SCHEMA).validate(params)
    settings = load_settings(write_params(tmp_path, params), ROOT)
    assert settings.trained_systems == ["tiny", "small", "trained"]
