"""The JSON Schema of params.yaml, with which editors complete and check it."""

from typing import Any

from bleuprint.config.experiment import Settings
from bleuprint.runtime.schema import NAME, json_schema


def params_schema() -> dict[str, Any]:
    """That of `Settings` as params.yaml writes it: with `like`, `from` and null, no key required.

    What code checks, such as a relation of two settings, only `bleuprint check` reports.
    """
    schema = json_schema(Settings)
    kinds = schema["$defs"]
    name = {"type": "string"}
    del schema["properties"]["cells"]
    for kind in (schema, *kinds.values()):
        kind.pop("required", None)
    for kind in kinds.values():
        for key, entry in kind.get("properties", {}).items():
            kind["properties"][key] = {"anyOf": [entry, {"type": "null"}]}
    kinds["Corpus"]["properties"] |= {"like": name, "from": name}
    cell = {"anyOf": [{"$ref": "#/$defs/System"}, {"type": "null"}]}
    overrides = {"additionalProperties": cell, "type": "object"}
    of_row = {"like": name, "corpora": overrides}
    kinds["Row"] = kinds["System"] | {"properties": kinds["System"]["properties"] | of_row}
    schema["properties"]["systems"] = {
        "additionalProperties": False,
        "patternProperties": {NAME: {"$ref": "#/$defs/Row"}},
        "type": "object",
    }
    schema["required"] = ["experiment", "seeds", "corpora", "systems"]
    return schema
