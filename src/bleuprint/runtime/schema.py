"""Documents as frozen dataclasses, validated by pydantic.

The dataclasses are the standard library's, so that code builds them without checks. What a document
says is checked: unknown keys, missing ones, types and ranges, and what `__post_init__` refuses with
a ValueError. All errors are reported at once, each with file, line, key, value and nearest name.
"""

import difflib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from annotated_types import Ge, Interval
from pydantic import GetCoreSchemaHandler, StringConstraints, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, ValidationError, core_schema

from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.files import RERUN, DamagedFile, read_json
from bleuprint.runtime.interrupts import postpone_interrupts
from bleuprint.runtime.wording import counted
from bleuprint.runtime.yaml_tree import Location

T = TypeVar("T")

# A name that a user gives to an entry becomes a name of files, stages and experiments.
NAME = "^[A-Za-z0-9][A-Za-z0-9_-]*$"
MAX_NAME = 100
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=MAX_NAME)]
Language = Annotated[str, StringConstraints(pattern="^[a-z]{2,3}$")]
LANGUAGE_TAG = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$"
NotBlank = Annotated[str, StringConstraints(pattern=r"\S")]
Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, lt=1)]

# What a message says of a value, by pydantic's type of the error.
_SAID = {
    "int_type": "is not a whole number",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "bool_type": "is not true or false",
    "string_type": "is not text (quote it: '...')",
    "tuple_type": "is not a list: [...]",
    "dict_type": "is not a mapping of names",
    "dataclass_type": "is not a mapping",
    "too_short": "needs at least {entries}",
    "too_long": "has more than {entries}",
    "literal_error": "is not one of {expected}",
    "greater_than_equal": "is out of range: at least {ge:.10g}",
    "greater_than": "is out of range: above {gt:.10g}",
    "less_than_equal": "is out of range: at most {le:.10g}",
    "less_than": "is out of range: below {lt:.10g}",
}
# What a message adds to a field too few or too many.
_OTHER_VERSION = ", as in a file that another version wrote"
_PATTERNS = {
    "^[a-z]{2,3}$": "a language is two or three letters, such as 'de', not {}",
    LANGUAGE_TAG: "a language code is one such as 'en', 'en-GB' or 'zh-Hant', not {}",
    r"\S": "{} is blank: write some text",
    "^[0-9a-f]{64}$": "a SHA-256 is 64 hexadecimal digits, lower case, not {}",
}
_NAME = (
    f"a name is of letters (a to z, A to Z), digits, '-' and '_', at most {MAX_NAME}, and begins "
    "with a letter or digit, not {}"
)


@dataclass(frozen=True)
class NamedEntries:
    """A mapping from names of dataclasses to fields; read as a tuple in the order of `kinds`."""

    kinds: Mapping[str, type]

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        entries = {
            name: core_schema.typed_dict_field(handler.generate_schema(kind), required=False)
            for name, kind in self.kinds.items()
        }
        return core_schema.no_info_after_validator_function(
            lambda given: tuple(given[name] for name in self.kinds if name in given),
            core_schema.typed_dict_schema(entries, extra_behavior="forbid"),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda rules: {rule.name(): to_json_value(rule) for rule in rules}
            ),
        )


class SettingError(ValueError):
    """An error of the entry at `keys` below a dataclass, raised by its `__post_init__`."""

    def __init__(self, keys: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.keys = keys


def validate_document(
    kind: type[T], document: Any, path: Path, errors: Sequence[UserError] = ()
) -> T:
    """A `kind`, a dataclass, from a document; raises UserErrors with a line for each error.

    `errors`: those of what is left out of `document`, which therefore is not checked as a whole.
    """
    lines = [str(each) for each in errors]
    validator = _validator_of_fields(cast(Any, kind)) if errors else _validator(cast(Any, kind))
    try:
        built = validator.validate_python(document)
    except ValidationError as error:
        found: list[dict[str, Any]] = [dict(each) for each in error.errors()]
        if lines:  # a section may be empty by what is left out
            found = [each for each in found if each["type"] != "too_short"]
        same: dict[str, dict[str, None]] = {}  # lines by what is wrong, which entries may inherit
        for each in found:
            line = _line(kind, document, Location(path), each)
            same.setdefault(str(each.get("ctx", {}).get("error", line)), {})[line] = None
        for line, *others in same.values():
            also = ", ".join(other.split(": ")[1] for other in others)
            lines.append(f"{line} (also {also})" if also else line)
    if lines:
        raise UserErrors(dict.fromkeys(lines)) from None
    return cast(T, built)


def read_record(kind: type[T], path: Path, remedy: str = RERUN) -> T:
    """Read a JSON file of this program as a `kind`: a dataclass, a TypedDict, a dict of these.

    Args:
        kind: a type that pydantic knows; a field of another type, and in a dataclass also an
            unknown one, is refused.
        path: the file.
        remedy: what a message tells the user to do about a damaged file.

    Raises:
        UserError: if there is no such file.
        DamagedFile: if its content is not a `kind`; names the first wrong field.
    """
    try:
        content = read_json(path, remedy)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {remedy}") from None
    return check_record(kind, content, path, remedy)


def check_record(
    kind: type[T], content: Any, path: Path, remedy: str = RERUN, keys: Sequence[str] = ()
) -> T:
    """Build a record from the content of a JSON file, or from a part of the content.

    Args:
        kind: The record's dataclass.
        content: The file's content, or a part of it.
        path: The file, for messages.
        remedy: What to do about a damaged file.
        keys: The keys that lead to the part in the file; none for the whole content.

    Raises:
        DamagedFile: A field is missing, unknown, or has a value of another type.
    """
    try:
        return cast(T, _validator(cast(Any, kind)).validate_python(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    names = [*keys, *(str(key) for key in first["loc"] if key != "[key]")]
    field = f"field {'.'.join(names)}" if names else "the whole file"
    if first["type"] == "missing" or first["type"] == "missing_argument":
        raise DamagedFile(path, f"{field} is missing{_OTHER_VERSION}", remedy)
    if first["type"] == "unexpected_keyword_argument":
        raise DamagedFile(path, f"{field} is unknown{_OTHER_VERSION}", remedy)
    cause = first.get("ctx", {}).get("error")
    problem = str(cause) if cause else _problem(dict(first))
    raise DamagedFile(path, f"{field}: {problem}", remedy)


def to_json_value(value: Any) -> Any:
    """What `build` reads back as the same value, in JSON's types; what is not set is left out."""
    return _adapter(cast(Any, type(value))).dump_python(
        value, mode="json", by_alias=True, exclude_none=True
    )


def json_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a dataclass, for editors."""
    with postpone_interrupts():
        schema = _adapter(kind).json_schema()
    for each in (schema, *schema.get("$defs", {}).values()):
        each.setdefault("additionalProperties", False)
    return schema


def describe_unknown_key(name: Any, known: Collection[str]) -> str:
    """What a message says of a key that is not known."""
    # what other toolkits call steps are updates here
    known = [*map(str, known)]  # also names that YAML reads as numbers
    near = difflib.get_close_matches(str(name).replace("step", "update"), known, n=1)
    names = f"known here: {', '.join(known)}" if known else "write {}"
    return f"unknown key; {f'did you mean {near[0]!r}?' if near else names}"


def list_known_names(name: Any, known: Collection[str]) -> str:
    """What a message says of a name that is not known: the known ones, and the nearest of them."""
    known = [*map(str, known)]
    if not known:
        return "there are none"
    near = difflib.get_close_matches(str(name), known, n=1)
    return f"there are: {', '.join(known)}" + (f"; did you mean {near[0]!r}?" if near else "")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    with postpone_interrupts():
        return TypeAdapter(kind)


@cache
def _validator(kind: Any) -> SchemaValidator:
    schema = _strict(_adapter(kind).core_schema)
    with postpone_interrupts():
        return SchemaValidator(schema)


@cache
def _validator_of_fields(kind: Any) -> SchemaValidator:
    """A validator of each field of a dataclass, without the checks of its `__post_init__`."""
    schema = _strict(_adapter(kind).core_schema)
    whole = schema["schema"] if schema["type"] == "definitions" else schema
    whole["post_init"] = False
    with postpone_interrupts():
        return SchemaValidator(schema)


def _strict(schema: Any) -> Any:
    """A schema that takes no text for a number, no 1 for true and no infinity.

    pydantic's own strict mode would refuse mappings for dataclasses, too.
    """
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: value if key == "default" else _strict(value) for key, value in schema.items()}
    match schema.get("type"):
        case "int" if not inner.get("strict"):  # 1e5 is a whole number
            return core_schema.no_info_before_validator_function(_whole, inner | {"strict": True})
        case "float":
            return inner | {"strict": True, "allow_inf_nan": False}
        case "bool" | "str":
            return inner | {"strict": True}
        case "dataclass-args":
            return inner | {"extra_behavior": "forbid"}
    return inner


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _line(kind: Any, document: Any, root: Location, error: dict[str, Any]) -> str:
    """An error of pydantic as a line."""
    keys, context = [key for key in error["loc"] if key != "[key]"], error.get("ctx", {})
    keys += getattr(cause := context.get("error"), "keys", ())
    if error["type"] == "missing":
        keys = keys[:-1]
    place, value = root, document
    for key in keys:
        place, value = place.child(value, key), value[key] if _has(value, key) else None
    # a message that begins with a key stands there, where several rows may have it from
    found, named = place, str(cause or "").partition(" ")[0].rstrip(":")
    for key in named.split("."):
        if not _has(value, key):
            break
        found, value = found.child(value, key), value[key]
    else:
        if found.key.split(".")[:2] == place.key.split(".")[:2]:  # not in a row that is right
            place = Location(found.path, found.key.removesuffix(f".{named}"), found.line)
    return str(place.error(_message(kind, keys, error) if cause is None else str(cause)))


def _message(kind: Any, keys: Sequence[str | int], error: dict[str, Any]) -> str:
    context, shown = error.get("ctx", {}), _shown(error["input"])
    if "expected" in context:
        named = context["expected"].replace(" or ", ", ").replace("'", "")
        context["expected"] = named.replace("True", "true")
    match error["type"]:
        case "missing":
            row = keys[:1] == ["runs"] and len(keys) <= 4  # not deep in a setting that it gives
            like = "; `like: NAME` takes what is not given from the row NAME" if row else ""
            return f"the key {error['loc'][-1]!r} is missing{like}"
        case "unexpected_keyword_argument" | "extra_forbidden" | "invalid_key":
            deeper = _below(kind, keys[:-1], keys[-1])
            if deeper:
                return f"unknown key; did you mean {deeper!r}?"
            return describe_unknown_key(keys[-1], _known(kind, keys[:-1]))
        case "string_pattern_mismatch" | "string_too_long":
            return _PATTERNS.get(context.get("pattern", ""), _NAME).format(shown)
        case "dataclass_type" if names := _known(kind, keys)[:4]:
            form = ", ".join(f"{name}: ..." for name in names)
            return f"{shown} is not a mapping: {{{form}}}"
        case "string_type" if error["loc"][-1] == "[key]":
            return f"name {shown} is not text: quote it"
        case _:
            return _problem(error)


def _problem(error: dict[str, Any]) -> str:
    """What is wrong with a value, after the value itself."""
    context = dict(error.get("ctx", {}))
    limit = context.get("min_length", context.get("max_length"))
    if limit is not None:
        context["entries"] = counted(limit, "entry", "entries")
    if error["type"] in _SAID:
        said = _SAID[error["type"]].format_map(context)
    else:  # pydantic's own message may have braces, as a pattern has
        said = error["msg"].replace("Input should", "should")
    return f"{_shown(error['input'])} {said}"


def _has(value: Any, key: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(key, int) and key < len(value)
    return isinstance(value, Mapping) and key in value


def _known(kind: Any, keys: Sequence[str | int]) -> list[str]:
    """The keys that a dataclass knows in the mapping at `keys`."""
    schema = json_schema(kind)
    return [*_node_at(schema, keys)["properties"]]


def _below(kind: Any, keys: Sequence[str | int], name: str | int) -> str | None:
    """The dotted key of a setting of this name in the mappings below the one at `keys`.

    Of several the one of the fewest keys; None if there is none.
    """
    schema = json_schema(kind)
    level = {"": _node_at(schema, keys)}
    seen: list[dict[str, Any]] = []
    while level:
        next_level = {}
        for place, node in level.items():
            if node in seen:
                continue
            seen.append(node)
            properties = node.get("properties", {})
            if name in properties:
                return f"{place}{name}"
            for key, inner in properties.items():
                next_level[f"{place}{key}."] = _resolved(schema, inner)
        level = next_level
    return None


def _node_at(schema: dict[str, Any], keys: Sequence[str | int]) -> dict[str, Any]:
    """The part of a JSON Schema that describes the value at `keys`."""
    node = schema
    for key in keys:
        inner = node.get("properties", {}).get(key) or node.get("items")
        named = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
        node = _resolved(schema, inner or named[0])
    return node


def _resolved(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """A part of a JSON Schema, or the definition that it refers to."""
    if "anyOf" in node:
        return _resolved(schema, node["anyOf"][0])
    if "$ref" in node:
        definition: dict[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]]
        return definition
    return node


def _shown(value: Any) -> str:
    if value is None:
        return "an empty value"
    try:
        text = json.dumps(value) if isinstance(value, bool) else repr(value)
    except ValueError:  # of Python, which prints no numbers of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
