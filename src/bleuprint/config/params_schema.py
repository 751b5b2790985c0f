"""The JSON Schema of params.yaml, with which editors complete and check it."""

from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.external import SETTINGS_OF_TRAINED, TRANSLATIONS
from bleuprint.config.references import describe_links
from bleuprint.runtime.pydantic_adapters import json_schema
from bleuprint.runtime.schema import NAME

_TEXT_SCHEMA = {"type": "string"}


def params_schema() -> dict[str, Any]:
    """Return the JSON Schema of params.yaml.

    It is the schema of `Settings`, changed in what params.yaml may write in other ways: entries
    with `like` and `from`, null for a setting to remove, systems of both kinds in one mapping, and
    files by language. Relations between settings are checked by `bleuprint check` only.
    """
    schema = json_schema(Settings)
    definitions = schema["$defs"]
    for definition in (schema, *definitions.values()):
        definition.pop("required", None)  # An entry may inherit a required key.
    for definition in definitions.values():
        _allow_null(definition)
    _describe_corpora(definitions)
    _describe_systems(definitions)
    properties = schema["properties"]
    del properties["runs"]
    del properties["external"]
    properties["systems"] = {
        "additionalProperties": False,
        "patternProperties": {NAME: {"$ref": "#/$defs/Row"}},
        "type": "object",
    }
    for key, entry_schema in describe_links(definitions).items():
        properties[key] = {"additionalProperties": entry_schema, "type": "object"}
    schema["required"] = ["experiment", "seeds", "corpora", "systems"]
    return schema


def _describe_corpora(definitions: dict[str, Any]) -> None:
    """Add what corpora of params.yaml may write to the schema's definitions.

    A corpus has `like` and `from`, a text has files by language, and a direction may have texts.
    """
    file_schema = {"$ref": "#/$defs/File"}
    # A key of two or three letters is a language, except for the setting `tag`.
    definitions["Text"]["patternProperties"] = {"^(?!tag$)[a-z]{2,3}$": file_schema}
    corpus_properties = definitions["Corpus"]["properties"]
    corpus_properties["like"] = _TEXT_SCHEMA
    corpus_properties["from"] = _TEXT_SCHEMA
    direction_properties = definitions["Direction"]["properties"]
    for key in ("from", "files", "license_and_citation"):
        direction_properties[key] = corpus_properties[key]


def _describe_systems(definitions: dict[str, Any]) -> None:
    """Add systems of both kinds, and their settings on single corpora, to the definitions.

    `Row` is an entry of `systems`, and `OnCorpus` what it writes for one corpus. Both may have
    settings of trained and of external systems, but not of both kinds at once.
    """
    trained_properties = definitions["System"]["properties"]
    external_properties = definitions["ExternalSystem"]["properties"]
    settings = {**trained_properties, **external_properties}
    definitions["OnCorpus"] = {
        **definitions["System"],
        "properties": settings,
        "not": _settings_of_both_kinds(),
    }
    run_schema = {"anyOf": [{"$ref": "#/$defs/OnCorpus"}, {"type": "null"}]}
    definitions["Row"] = {
        **definitions["System"],
        "properties": {
            **settings,
            "like": _TEXT_SCHEMA,
            "corpora": {"additionalProperties": run_schema, "type": "object"},
        },
        "not": _settings_of_both_kinds(),
    }


def _settings_of_both_kinds() -> dict[str, Any]:
    """Return the schema of a system with settings of trained and of external systems.

    A key with null does not count, because it removes what the system inherits.
    """
    is_set = {"not": {"type": "null"}}
    settings_of_trained = []
    for setting in SETTINGS_OF_TRAINED:
        settings_of_trained.append({"required": [setting], "properties": {setting: is_set}})
    return {
        "required": [TRANSLATIONS],
        "properties": {TRANSLATIONS: is_set},
        "anyOf": settings_of_trained,
    }


def _allow_null(schema: dict[str, Any]) -> None:
    """Allow null as the value of each key of a schema, and of each key in these values.

    In params.yaml, null removes a setting that is inherited by `like`.
    """
    for section in ("properties", "patternProperties"):
        schemas_by_key = schema.get(section, {})
        for key, value_schema in list(schemas_by_key.items()):
            _allow_null(value_schema)
            schemas_by_key[key] = {"anyOf": [value_schema, {"type": "null"}]}
