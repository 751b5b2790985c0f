"""The keys of a document: those that it has, and those that the JSON Schema of its class allows."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bleuprint.runtime.pydantic_adapters import json_schema

# The keys that lead to an entry of a document: names in mappings, and positions in lists.
Keys = Sequence[str | int]


def has_entry(value: Any, key: str | int) -> bool:
    """Return whether a value is a mapping with this key, or a list with this position.

    Args:
        value: Any value of a JSON document.
        key: The key of a mapping, or the position in a list.
    """
    if isinstance(value, list):
        return isinstance(key, int) and key < len(value)
    return isinstance(value, Mapping) and key in value


def known_keys(settings_class: type[Any], keys: Keys) -> list[str]:
    """Return the keys that are allowed in a mapping of the document.

    Args:
        settings_class: The dataclass of the whole document.
        keys: The keys that lead to the mapping.
    """
    schema = json_schema(settings_class)
    return list(_schema_at(schema, keys)["properties"])


def find_deeper_key(settings_class: type[Any], keys: Keys, name: str | int) -> str | None:
    """Find the right place of a setting that the user has written one or more levels too high.

    A user may have written `d_model: 512` directly into a system, instead of
    `model: {d_model: 512}`. The search goes through the mappings level by level. If several of them
    have a setting of this name, it finds one at the highest level.

    Args:
        settings_class: The dataclass of the whole document.
        keys: The keys that lead to the mapping in which the user has written it.
        name: The name of the setting, such as `d_model`.

    Returns:
        The setting's dotted key, such as `model.d_model`; None if no mapping has such a setting.
    """
    schema = json_schema(settings_class)
    # The JSON Schemas of all mappings at one depth. The keys are prefixes such as "model.".
    level = {"": _schema_at(schema, keys)}
    # Each schema is searched once. Otherwise one that contains itself would never end.
    searched_schemas: list[dict[str, Any]] = []
    while level:
        next_level: dict[str, dict[str, Any]] = {}
        for prefix, mapping_schema in level.items():
            if mapping_schema in searched_schemas:
                continue
            searched_schemas.append(mapping_schema)
            properties = mapping_schema.get("properties", {})
            if name in properties:
                return f"{prefix}{name}"
            for key, value_schema in properties.items():
                next_level[f"{prefix}{key}."] = _resolve_reference(schema, value_schema)
        level = next_level
    return None


def _schema_at(schema: dict[str, Any], keys: Keys) -> dict[str, Any]:
    """Return the part of a JSON Schema that describes one value of the document.

    Args:
        schema: The schema of the whole document.
        keys: The keys that lead to the value.
    """
    value_schema = schema
    for key in keys:
        value_schema = _resolve_reference(schema, _schema_of_entry(value_schema, key))
    return value_schema


def _schema_of_entry(container_schema: dict[str, Any], key: str | int) -> dict[str, Any]:
    """Return the JSON Schema of an entry of a dataclass, a list or a mapping.

    Args:
        container_schema: The schema of the dataclass, list or mapping.
        key: The name of the entry, or its position in a list.
    """
    properties = container_schema.get("properties", {})
    if key in properties:
        entry_schema = properties[key]
    elif "items" in container_schema:
        entry_schema = container_schema["items"]
    elif "patternProperties" in container_schema:
        # A mapping whose names must match a pattern. Each of our mappings has exactly one pattern.
        (entry_schema,) = container_schema["patternProperties"].values()
    else:
        # A mapping in which all names are allowed.
        entry_schema = container_schema["additionalProperties"]
    return cast(dict[str, Any], entry_schema)


def _resolve_reference(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Follow the reference in a part of a JSON Schema to a definition of the same schema.

    Args:
        schema: The whole schema, which has the definitions of all dataclasses.
        part: A part of it. Without a reference, the part itself is returned.
    """
    if "anyOf" in part:
        # An optional setting has two alternatives: the first is its type, the second is null.
        return _resolve_reference(schema, part["anyOf"][0])
    if "$ref" in part:
        # A reference has the form "#/$defs/NAME".
        name = part["$ref"].split("/")[-1]
        return cast(dict[str, Any], schema["$defs"][name])
    return part
