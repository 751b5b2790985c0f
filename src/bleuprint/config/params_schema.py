"""The JSON Schema of params.yaml, with which editors complete and check it."""

from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.config.external import SETTINGS_OF_TRAINED, TRANSLATIONS
from bleuprint.config.references import LINKS
from bleuprint.runtime.pydantic_adapters import json_schema
from bleuprint.runtime.schema import NAME


def params_schema() -> dict[str, Any]:
    """That of `Settings` as params.yaml writes it: with `like`, `from`, null and files by language.

    What code checks, such as a relation of two settings, only `bleuprint check` reports.
    """
    schema = json_schema(Settings)
    kinds = schema["$defs"]
    name = {"type": "string"}
    del schema["properties"]["runs"], schema["properties"]["external"]
    for kind in (schema, *kinds.values()):
        kind.pop("required", None)
    for kind in kinds.values():
        _allow_null(kind)
    kinds["Text"]["patternProperties"] = {"^(?!tag$)[a-z]{2,3}$": {"$ref": "#/$defs/File"}}
    kinds["Corpus"]["properties"] |= {"like": name, "from": name}
    texts = {key: kinds["Corpus"]["properties"][key] for key in ("files", "license_and_citation")}
    kinds["Direction"]["properties"] |= {"from": name, **texts}
    settings = kinds["System"]["properties"] | kinds["ExternalSystem"]["properties"]
    kinds["OnCorpus"] = kinds["System"] | {"properties": settings, "not": _of_both_kinds()}
    run = {"anyOf": [{"$ref": "#/$defs/OnCorpus"}, {"type": "null"}]}
    overrides = {"additionalProperties": run, "type": "object"}
    of_row = {"like": name, "corpora": overrides}
    kinds["Row"] = kinds["System"] | {"properties": settings | of_row, "not": _of_both_kinds()}
    rows = {
        "additionalProperties": False,
        "patternProperties": {NAME: {"$ref": "#/$defs/Row"}},
        "type": "object",
    }
    schema["properties"] |= {"systems": rows}
    for key, entry_type in LINKS.items():
        schema["properties"][key] = {
            "additionalProperties": _schema_of(entry_type),
            "type": "object",
        }
    schema["required"] = ["experiment", "seeds", "corpora", "systems"]
    return schema


def _schema_of(entry_type: type) -> dict[str, str]:
    """The schema of an entry: a class of the settings, or text."""
    if entry_type is str:
        return {"type": "string"}
    return {"$ref": f"#/$defs/{entry_type.__name__}"}


def _of_both_kinds() -> dict[str, Any]:
    """The schema of a system with settings of trained and of external systems.

    A key with null does not count: it removes what the system inherits.
    """
    given = {"not": {"type": "null"}}
    of_trained = [
        {"required": [setting], "properties": {setting: given}} for setting in SETTINGS_OF_TRAINED
    ]
    return {
        "required": [TRANSLATIONS],
        "properties": {TRANSLATIONS: given},
        "anyOf": of_trained,
    }


def _allow_null(schema: dict[str, Any]) -> None:
    """Allow null as the value of each key of a schema, also of the keys in its values.

    In params.yaml, null removes a setting that is inherited by `like`.
    """
    for section in ("properties", "patternProperties"):
        schemas_by_key = schema.get(section, {})
        for key, value_schema in list(schemas_by_key.items()):
            _allow_null(value_schema)
            schemas_by_key[key] = {"anyOf": [value_schema, {"type": "null"}]}
