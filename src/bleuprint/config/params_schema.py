"""The JSON Schema of params.yaml, with which editors complete and check it."""

from typing import Any

from bleuprint.config.corpus_files import NAMES_OF_TEXTS
from bleuprint.config.experiment import Settings
from bleuprint.config.external import SETTINGS_OF_TRAINED, TRANSLATIONS
from bleuprint.config.references import describe_links
from bleuprint.runtime.pydantic_adapters import json_schema
from bleuprint.runtime.schema import NAME
from bleuprint.runtime.tag_pattern import LANGUAGE_TAG

_STRING_SCHEMA = {"type": "string"}


def params_schema() -> dict[str, Any]:
    """Return the JSON Schema of params.yaml, with which editors complete and check the file.

    It is generated from the dataclasses of the settings. But params.yaml differs from them: an
    entry may omit settings that it inherits from another entry, and some settings are written in
    another form. So the generated schema is changed.
    """
    schema = json_schema(Settings)
    definitions = schema["$defs"]
    for definition in (schema, *definitions.values()):
        # Even a required setting may be missing in an entry, since the entry may inherit it.
        definition.pop("required", None)
    for definition in definitions.values():
        _allow_null(definition)
    _describe_corpora(definitions)
    _describe_systems(definitions)
    properties = schema["properties"]
    # The dataclasses keep trained and external systems apart; params.yaml has them in `systems`.
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
    """Add to a JSON Schema the keys of a corpus that exist in params.yaml, but not as settings.

    `like` and `from` take settings from elsewhere, a text may have a file for each language, and a
    direction may have texts. When params.yaml is read, settings of the dataclasses replace all of
    these keys.

    Args:
        definitions: The definitions of the schema; changed in place.
    """
    file_schema = {"$ref": "#/$defs/File"}
    # A key that looks like a language is one, except for the setting `tag`.
    definitions["Text"]["patternProperties"] = {f"^(?!tag$){LANGUAGE_TAG}$": file_schema}
    text_properties = definitions["Text"]["properties"]
    for key in (*NAMES_OF_TEXTS, "revision", "file"):
        text_properties[key] = _STRING_SCHEMA
    # A test set of sacreBLEU may have numbered references.
    text_properties["reference"] = {"type": ["string", "integer"]}
    corpus_properties = definitions["Corpus"]["properties"]
    corpus_properties["like"] = _STRING_SCHEMA
    corpus_properties["from"] = _STRING_SCHEMA
    direction_properties = definitions["Direction"]["properties"]
    for key in ("from", "files", "license_and_citation"):
        direction_properties[key] = corpus_properties[key]


def _describe_systems(definitions: dict[str, Any]) -> None:
    """Add to a JSON Schema what params.yaml may contain for a system, trained or external.

    The new definition `Row` describes an entry of `systems`, and `OnCorpus` the settings of a
    system for one corpus. Each allows the settings of a trained or of an external system, but not
    both at once.

    Args:
        definitions: The definitions of the schema; changed in place.
    """
    trained_properties = definitions["System"]["properties"]
    external_properties = definitions["ExternalSystem"]["properties"]
    settings = {**trained_properties, **external_properties}
    definitions["OnCorpus"] = {
        **definitions["System"],
        "properties": settings,
        "not": _both_kinds_schema(),
    }
    # Null excludes the corpus: the system is not trained on it.
    run_schema = {"anyOf": [{"$ref": "#/$defs/OnCorpus"}, {"type": "null"}]}
    definitions["Row"] = {
        **definitions["System"],
        "properties": {
            **settings,
            "like": _STRING_SCHEMA,
            "corpora": {"additionalProperties": run_schema, "type": "object"},
        },
        "not": _both_kinds_schema(),
    }


def _both_kinds_schema() -> dict[str, Any]:
    """Return a JSON Schema that matches a system that is both trained and external: a mistake.

    Such a system has translations, as an external system does, and a setting of a trained system.
    Settings that are null do not count, because null removes an inherited setting.
    """
    is_not_null = {"not": {"type": "null"}}
    any_training_setting = []
    for setting in SETTINGS_OF_TRAINED:
        any_training_setting.append({"required": [setting], "properties": {setting: is_not_null}})
    return {
        "required": [TRANSLATIONS],
        "properties": {TRANSLATIONS: is_not_null},
        "anyOf": any_training_setting,
    }


def _allow_null(schema: dict[str, Any]) -> None:
    """Let every value that a JSON Schema describes also be null, at any depth.

    In params.yaml, null removes a setting that an entry inherits from another entry.

    Args:
        schema: The schema; changed in place.
    """
    for section in ("properties", "patternProperties"):
        schemas_by_key = schema.get(section, {})
        for key, value_schema in list(schemas_by_key.items()):
            _allow_null(value_schema)
            schemas_by_key[key] = {"anyOf": [value_schema, {"type": "null"}]}
