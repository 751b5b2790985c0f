"""Validators and JSON Schemas that pydantic makes for a type, such as a frozen dataclass.

pydantic compiles a type into a *core schema*, a tree of dictionaries, and the core schema into a
validator. Its two modes do not suit a document that a user writes: the lax mode takes the text "3"
for the number 3, and the strict mode refuses a mapping where a dataclass is expected. So the
functions below edit the core schema before it becomes a validator.

The form of core schemas may change with a version of pydantic. This is the only module that knows
it; tests/config/test_experiment.py shows what the edited schemas must refuse.

All calls of pydantic's core, which is written in Rust, postpone Ctrl-C: it would report a
KeyboardInterrupt as an error of the schema.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, core_schema

from bleuprint.runtime.interrupts import postpone_interrupts


@cache
def type_adapter(document_type: Any) -> TypeAdapter[Any]:
    """Return the adapter by which pydantic checks and writes the values of a type.

    It contains the core schema of the type: nested dictionaries that describe the valid values.
    """
    with postpone_interrupts():
        return TypeAdapter(document_type)


@cache
def strict_validator(document_type: Any) -> SchemaValidator:
    """Return a validator that refuses values of other types and unknown keys.

    By default, pydantic would accept the text "3" as the number 3, and ignore unknown keys, so that
    mistakes of a user would remain unnoticed.
    """
    schema = _make_strict(type_adapter(document_type).core_schema)
    with postpone_interrupts():
        return SchemaValidator(schema)


@cache
def field_validator(dataclass_type: Any) -> SchemaValidator:
    """Return a validator of a dataclass that checks each field alone.

    It does not call the `__post_init__` of the dataclass, which checks whether the fields fit
    together. It is for a document from which entries with errors have been removed: its other
    fields can still be checked, but not whether they fit together.
    """
    schema = _make_strict(type_adapter(dataclass_type).core_schema)
    dataclass_schema = schema
    if schema["type"] == "definitions":
        # The type refers to itself or to another type several times. pydantic then wraps its schema
        # in a dictionary that also has the definitions of these types.
        dataclass_schema = schema["schema"]
    dataclass_schema["post_init"] = False
    with postpone_interrupts():
        return SchemaValidator(schema)


def json_schema(document_type: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type: a description of valid documents that other programs read.

    Editors use it to complete and check params.yaml, and error messages to suggest keys.
    """
    with postpone_interrupts():
        schema = type_adapter(document_type).json_schema()
    definitions = schema.get("$defs", {}).values()
    for object_schema in (schema, *definitions):
        # `strict_validator` refuses unknown keys, of which pydantic's schema says nothing.
        object_schema.setdefault("additionalProperties", False)
    return schema


def _make_strict(schema: Any) -> Any:
    """Return a copy of pydantic's description of a type, which refuses more values.

    The copy refuses unknown keys, infinity, a text in place of a number, and 1 in place of true. A
    float without a fraction, such as 1e5, is accepted as a whole number.

    Args:
        schema: A core schema or a part of it: a dictionary, a list, or a value in one of them.
    """
    if isinstance(schema, list):
        return [_make_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict_schema: dict[str, Any] = {}
    for key, value in schema.items():
        # The default value of a field may be a dictionary, which must not be mistaken for a schema.
        strict_schema[key] = value if key == "default" else _make_strict(value)
    schema_type = schema.get("type")
    if schema_type in ("bool", "str"):
        strict_schema["strict"] = True
    elif schema_type == "float":
        strict_schema["strict"] = True
        strict_schema["allow_inf_nan"] = False
    elif schema_type == "dataclass-args":
        strict_schema["extra_behavior"] = "forbid"
    elif schema_type == "int" and not strict_schema.get("strict"):
        # YAML reads 1e5 as a float, but a user means a whole number. So such a float is converted
        # before the number is checked.
        strict_schema["strict"] = True
        return core_schema.no_info_before_validator_function(_as_whole_number, strict_schema)
    return strict_schema


def _as_whole_number(value: Any) -> Any:
    """Return a float without a fraction as an int, and any other value unchanged."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
