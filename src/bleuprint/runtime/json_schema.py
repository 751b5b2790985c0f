"""The JSON Schema of settings, with which editors complete and check params.yaml."""

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from bleuprint.runtime.schema import MAX_NAME, NAME, Name, Named, Range

Schema = dict[str, Any]

_SCALARS = {float: "number", int: "integer", bool: "boolean", str: "string"}
_NAME: Schema = {"type": "string", "pattern": f"^{NAME}$", "maxLength": MAX_NAME}


def json_schema(kind: type) -> Schema:
    """The schema (draft 7) of a dataclass that `bleuprint.runtime.schema.build` reads.

    It has types, ranges, choices and the keys that are required; what a dataclass checks in code,
    such as a relation of two settings, only `bleuprint check` reports.
    """
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_schema(kind)}


def _schema(kind: Any) -> Schema:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind == Name:
        return _NAME
    if origin is Annotated:
        return _annotated(*arguments)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return {"anyOf": [_schema(inner), {"type": "null"}]}
    if origin is dict:
        return {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": _schema(arguments[1]),
        }
    if origin is tuple:
        return _array(arguments)
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind))
    return {"type": _SCALARS[kind]}


def _annotated(kind: Any, *bounds: Any) -> Schema:
    if isinstance(bounds[0], Named):
        return _object({name: _record(each) for name, each in bounds[0].kinds.items()})
    schema = _schema(kind)
    for bound in bounds:
        if isinstance(bound, Range):
            if bound.low > -math.inf:
                schema["exclusiveMinimum" if bound.open_low else "minimum"] = bound.low
            if bound.high < math.inf:
                schema["exclusiveMaximum" if bound.open_high else "maximum"] = bound.high
    return schema


def _array(kinds: tuple[Any, ...]) -> Schema:
    if kinds[-1] is Ellipsis:
        return {"type": "array", "items": _schema(kinds[0])}
    items = [_schema(kind) for kind in kinds]
    return {"type": "array", "items": items, "minItems": len(items), "additionalItems": False}


def _record(kind: type) -> Schema:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    schema = _object({field.name: _schema(hints[field.name]) for field in fields})
    for field in fields:
        if field.default not in (dataclasses.MISSING, None, ()):
            schema["properties"][field.name]["default"] = field.default
    if required := [field.name for field in fields if field.default is dataclasses.MISSING]:
        schema["required"] = required
    # a dataclass without a docstring gets its signature as one
    if kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("):
        schema["description"] = inspect.cleandoc(kind.__doc__)
    return schema


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}
