"""Documents, such as params.yaml and the records of runs, read into frozen dataclasses.

pydantic checks each document against its dataclass: unknown keys, missing keys, types and ranges,
and what `__post_init__` refuses by a ValueError. Code that builds a dataclass itself runs no such
check, since the dataclasses are the standard library's.

- `validate_document` checks settings that a user writes. It reports all errors at once, each with
  its file, line and key.
- `read_record` and `check_record` check files that this program writes. They report the first
error.

The validators are made in `pydantic_adapters`; the second half of this module writes the messages.
"""

import difflib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from annotated_types import Ge, Interval
from pydantic import GetCoreSchemaHandler, StringConstraints
from pydantic_core import CoreSchema, ErrorDetails, ValidationError, core_schema

from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.files import RERUN, DamagedFile, read_json
from bleuprint.runtime.pydantic_adapters import (
    field_validator,
    json_schema,
    strict_validator,
    type_adapter,
)
from bleuprint.runtime.wording import counted
from bleuprint.runtime.yaml_tree import Location

T = TypeVar("T")
# The keys that lead to an entry of a document: names in mappings, and positions in lists.
Keys = Sequence[str | int]

# A name that a user gives to an entry becomes a part of names of files, stages and experiments.
NAME = "^[A-Za-z0-9][A-Za-z0-9_-]*$"
MAX_NAME = 100
LANGUAGE_TAG = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$"
_LANGUAGE = "^[a-z]{2,3}$"
_NOT_BLANK = r"\S"
_SHA256 = "^[0-9a-f]{64}$"

# Types of fields that several documents have.
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=MAX_NAME)]
Language = Annotated[str, StringConstraints(pattern=_LANGUAGE)]
NotBlank = Annotated[str, StringConstraints(pattern=_NOT_BLANK)]
Sha256 = Annotated[str, StringConstraints(pattern=_SHA256)]
Count = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, lt=1)]

# What a message says after a wrong value, by pydantic's type of the error. The words in braces are
# pydantic's names of the limits.
_PROBLEMS = {
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
# What a message says about a text that does not match a pattern; {} is the text.
_PATTERN_PROBLEMS = {
    _LANGUAGE: "a language is two or three letters, such as 'de', not {}",
    LANGUAGE_TAG: "a language code is one such as 'en', 'en-GB' or 'zh-Hant', not {}",
    _NOT_BLANK: "{} is blank: write some text",
    _SHA256: "a SHA-256 is 64 hexadecimal digits, lower case, not {}",
}
_NAME_PROBLEM = (
    f"a name is of letters (a to z, A to Z), digits, '-' and '_', at most {MAX_NAME}, and begins "
    "with a letter or digit, not {}"
)
# What a message adds to a field of a record that is missing or unknown.
_OTHER_VERSION = ", as in a file that another version wrote"
_MAX_VALUE_CHARACTERS = 60


@dataclass(frozen=True)
class NamedEntries:
    """The annotation of a field that is a mapping in a document and a tuple of dataclasses here.

    For example, the cleaning rules `{length: {max: 250}, numerals: {}}` are read as
    `(Length(max=250), Numerals())`.

    Attributes:
        classes: The dataclass of each entry by its name. Their order is the order of the tuple,
            whatever the order in the document.
    """

    classes: Mapping[str, type]

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the core schema of the field; pydantic calls this method."""
        entry_schemas = {
            name: core_schema.typed_dict_field(handler.generate_schema(entry_class), required=False)
            for name, entry_class in self.classes.items()
        }

        def as_tuple(entries: dict[str, Any]) -> tuple[Any, ...]:
            """Return the dataclasses of the mapping in the order of `classes`."""
            return tuple(entries[name] for name in self.classes if name in entries)

        def as_mapping(dataclasses: tuple[Any, ...]) -> dict[str, Any]:
            """Return the dataclasses as the document has them, by name."""
            return {instance.name(): to_json_value(instance) for instance in dataclasses}

        return core_schema.no_info_after_validator_function(
            as_tuple,
            core_schema.typed_dict_schema(entry_schemas, extra_behavior="forbid"),
            serialization=core_schema.plain_serializer_function_ser_schema(as_mapping),
        )


class SettingError(ValueError):
    """An error of one entry, raised by the `__post_init__` of a dataclass around the entry.

    Attributes:
        keys: The keys that lead from the dataclass to the entry.
    """

    def __init__(self, keys: Keys, message: str) -> None:
        super().__init__(message)
        self.keys = keys


def validate_document(
    settings_class: type[T], document: Any, path: Path, errors: Sequence[UserError] = ()
) -> T:
    """Build a dataclass of settings from a document that a user has written.

    Args:
        settings_class: The dataclass.
        document: The document, such as a `LocatedMapping`, which knows the lines of its entries.
        path: The document's file, for messages.
        errors: Errors that were found before. The entries with these errors are missing from
            `document`, so only its fields are checked, and not `__post_init__`.

    Raises:
        UserErrors: The document or `errors` has errors; there is one line for each.
    """
    lines = [str(error) for error in errors]
    is_incomplete = bool(errors)
    make_validator = field_validator if is_incomplete else strict_validator
    validator = make_validator(cast(Any, settings_class))
    try:
        settings = validator.validate_python(document)
    except ValidationError as error:
        details = error.errors()
        if is_incomplete:
            # An entry with an error may be the only one of its section, which then seems empty.
            details = [detail for detail in details if detail["type"] != "too_short"]
        lines.extend(_describe_errors(details, document, path, settings_class))
    if lines:
        unique_lines = dict.fromkeys(lines)
        raise UserErrors(unique_lines) from None
    return cast(T, settings)


def read_record(record_type: type[T], path: Path, remedy: str = RERUN) -> T:
    """Read a JSON file that this program has written.

    Args:
        record_type: The type of the record: a dataclass, a TypedDict, or a dict of these. A
            dataclass allows no unknown fields.
        path: The file.
        remedy: What a message tells the user to do about a damaged file.

    Raises:
        UserError: The file does not exist.
        DamagedFile: The content is not of this type; the message names the first wrong field.
    """
    try:
        content = read_json(path, remedy)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; {remedy}") from None
    return check_record(record_type, content, path, remedy)


def check_record(
    record_type: type[T], content: Any, path: Path, remedy: str = RERUN, keys: Sequence[str] = ()
) -> T:
    """Build a record from the content of a JSON file, or from a part of the content.

    Args:
        record_type: The type of the record, as in `read_record`.
        content: The parsed JSON.
        path: The file, for messages.
        remedy: What a message tells the user to do about a damaged file.
        keys: The keys that lead to `content` in the file; none for the whole content.

    Raises:
        DamagedFile: A field is missing, unknown, or has a value of another type.
    """
    try:
        return cast(T, strict_validator(cast(Any, record_type)).validate_python(content))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    field_key = ".".join(str(key) for key in [*keys, *_keys_of(detail)])
    field = f"field {field_key}" if field_key else "the whole file"
    cause = _cause_of(detail)
    if detail["type"] in ("missing", "missing_argument"):
        problem = f"{field} is missing{_OTHER_VERSION}"
    elif detail["type"] == "unexpected_keyword_argument":
        problem = f"{field} is unknown{_OTHER_VERSION}"
    elif cause is not None:
        problem = f"{field}: {cause}"
    else:
        problem = f"{field}: {_describe_wrong_value(detail)}"
    raise DamagedFile(path, problem, remedy)


def to_json_value(value: Any) -> Any:
    """Return a dataclass as JSON values, from which `validate_document` builds the same dataclass.

    Fields that are None are left out.
    """
    value_type: Any = type(value)
    return type_adapter(value_type).dump_python(
        value, mode="json", by_alias=True, exclude_none=True
    )


def describe_unknown_key(name: object, known_names: Collection[str]) -> str:
    """Return what a message says of an unknown key: the nearest known key, or all of them."""
    # YAML reads some names as numbers.
    known_keys = [str(known_name) for known_name in known_names]
    if not known_keys:
        return "unknown key; write {}"
    # Other toolkits call an update a step: for max_steps, max_updates is the nearest key.
    searched_key = str(name).replace("step", "update")
    nearest_keys = difflib.get_close_matches(searched_key, known_keys, n=1)
    if nearest_keys:
        return f"unknown key; did you mean {nearest_keys[0]!r}?"
    return f"unknown key; known here: {', '.join(known_keys)}"


def list_known_names(name: object, known_names: Collection[str]) -> str:
    """Return what a message says after an unknown name: all known names, and the nearest."""
    known_texts = [str(known_name) for known_name in known_names]
    if not known_texts:
        return "there are none"
    message = f"there are: {', '.join(known_texts)}"
    nearest_names = difflib.get_close_matches(str(name), known_texts, n=1)
    if nearest_names:
        message += f"; did you mean {nearest_names[0]!r}?"
    return message


def _describe_errors(
    details: Sequence[ErrorDetails], document: Any, path: Path, settings_class: type[Any]
) -> list[str]:
    """Return one line for each error of a document; an error that several entries share has one.

    Rows of the experiment take settings from other rows (`like`), so that one wrong value is found
    in each of these rows. The line is then about the first row, and ends with the keys of the other
    rows: "(also KEY, KEY)".
    """
    # For each error, the lines about its entries, in order and without repeats.
    lines_by_error: dict[str, dict[str, None]] = {}
    for detail in details:
        line = _describe_error(detail, document, path, settings_class)
        cause = _cause_of(detail)
        error = line if cause is None else str(cause)
        lines_by_error.setdefault(error, {})[line] = None
    described = []
    for first_line, *other_lines in lines_by_error.values():
        # A line is "FILE:LINE: KEY: MESSAGE".
        other_keys = [line.split(": ")[1] for line in other_lines]
        also = f" (also {', '.join(other_keys)})" if other_keys else ""
        described.append(first_line + also)
    return described


def _describe_error(
    detail: ErrorDetails, document: Any, path: Path, settings_class: type[Any]
) -> str:
    """Return the line for one error of a document: its file, line and key, and what is wrong."""
    keys = _keys_of(detail)
    cause = _cause_of(detail)
    if isinstance(cause, SettingError):
        keys.extend(cause.keys)
    if detail["type"] == "missing":
        # A missing key has no line: the message shows the line of the mapping around it.
        keys.pop()
    location = Location(path)
    value = document
    for key in keys:
        location = location.child(value, key)
        value = value[key] if _has_entry(value, key) else None
    if cause is None:
        message = _describe_pydantic_error(detail, keys, settings_class)
    else:
        message = str(cause)
        location = _location_of_named_key(message, location, value)
    return str(location.error(message))


def _location_of_named_key(message: str, location: Location, value: Any) -> Location:
    """Return the location of the key that begins a message, such as `max_tokens: too small`.

    Args:
        message: The message about a value.
        location: The location of the value.
        value: The value, in which the key is looked up.

    Returns:
        `location` itself if the message does not begin with a key of the value. The same holds if
        the key stands in another row of the experiment, from which this row takes it: the other row
        is right by itself.
    """
    named_key = message.partition(" ")[0].rstrip(":")
    key_location = location
    for key in named_key.split("."):
        if not _has_entry(value, key):
            return location
        key_location = key_location.child(value, key)
        value = value[key]
    # The first two keys name a row: `systems.NAME`.
    is_in_same_row = key_location.key.split(".")[:2] == location.key.split(".")[:2]
    if not is_in_same_row:
        return location
    # The message names the key itself.
    key_before = key_location.key.removesuffix(f".{named_key}")
    return Location(key_location.path, key_before, key_location.line)


def _describe_pydantic_error(detail: ErrorDetails, keys: Keys, settings_class: type[Any]) -> str:
    """Return what is wrong with an entry of settings, for an error that pydantic itself has found.

    Args:
        detail: The error.
        keys: The keys of the entry; of a missing entry, those of the mapping around it.
        settings_class: The dataclass of the whole document.
    """
    value_text = _quote_value(detail["input"])
    match detail["type"]:
        case "missing":
            message = f"the key {detail['loc'][-1]!r} is missing"
            # `runs.SYSTEM.CORPUS.SECTION`: deeper settings, such as a schedule, are no row's.
            is_in_row = keys[:1] == ["runs"] and len(keys) <= 4
            if is_in_row:
                message += "; `like: NAME` takes what is not given from the row NAME"
            return message
        case "unexpected_keyword_argument" | "extra_forbidden" | "invalid_key":
            return _describe_misplaced_key(keys, settings_class)
        case "string_pattern_mismatch" | "string_too_long":
            pattern = detail.get("ctx", {}).get("pattern", "")
            return _PATTERN_PROBLEMS.get(pattern, _NAME_PROBLEM).format(value_text)
        case "string_type" if detail["loc"][-1] == "[key]":
            return f"name {value_text} is not text: quote it"
        case "dataclass_type":
            form = ", ".join(f"{key}: ..." for key in _known_keys(settings_class, keys)[:4])
            if form:
                return f"{value_text} is not a mapping: {{{form}}}"
    return _describe_wrong_value(detail)


def _describe_misplaced_key(keys: Keys, settings_class: type[Any]) -> str:
    """Return what a message says of an unknown key: where it belongs, or the known keys."""
    *parent_keys, name = keys
    deeper_key = _find_deeper_key(settings_class, parent_keys, name)
    if deeper_key is not None:
        return f"unknown key; did you mean {deeper_key!r}?"
    return describe_unknown_key(name, _known_keys(settings_class, parent_keys))


def _describe_wrong_value(detail: ErrorDetails) -> str:
    """Return a wrong value and what is wrong with it, such as "'3' is not a whole number"."""
    value_text = _quote_value(detail["input"])
    if detail["type"] not in _PROBLEMS:
        # pydantic's own message; it may contain braces, as a pattern does.
        return f"{value_text} {detail['msg'].replace('Input should', 'should')}"
    limits = dict(detail.get("ctx", {}))
    length = limits.get("min_length", limits.get("max_length"))
    if length is not None:
        limits["entries"] = counted(length, "entry", "entries")
    if "expected" in limits:
        # pydantic writes "'post' or 'pre'", and True where YAML has true.
        expected = limits["expected"].replace(" or ", ", ").replace("'", "")
        limits["expected"] = expected.replace("True", "true")
    return f"{value_text} {_PROBLEMS[detail['type']].format_map(limits)}"


def _keys_of(detail: ErrorDetails) -> list[str | int]:
    """Return the keys that lead to the entry with an error."""
    # pydantic adds "[key]" where the error is in a mapping's key, and not in its value.
    return [key for key in detail["loc"] if key != "[key]"]


def _cause_of(detail: ErrorDetails) -> ValueError | None:
    """Return the error that `__post_init__` of a dataclass raised; None for pydantic's own."""
    return detail.get("ctx", {}).get("error")


def _has_entry(value: Any, key: str | int) -> bool:
    """Return whether a value is a list with this position or a mapping with this key."""
    if isinstance(value, list):
        return isinstance(key, int) and key < len(value)
    return isinstance(value, Mapping) and key in value


def _quote_value(value: Any) -> str:
    """Return a value of a document as a message shows it, cut after 60 characters."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return json.dumps(value)
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to print whole numbers of more than 4,300 digits.
        return "a number of thousands of digits"
    if len(text) > _MAX_VALUE_CHARACTERS:
        return f"{text[: _MAX_VALUE_CHARACTERS - 3]}..."
    return text


def _known_keys(settings_class: type[Any], keys: Keys) -> list[str]:
    """Return the keys that a document may have in the mapping to which `keys` lead."""
    schema = json_schema(settings_class)
    return list(_schema_at(schema, keys)["properties"])


def _find_deeper_key(settings_class: type[Any], keys: Keys, name: str | int) -> str | None:
    """Find a setting of this name in the mappings below the one to which `keys` lead.

    A user may have written `d_model: 512` directly into a system, in place of
    `model: {d_model: 512}`. This is a breadth-first search, so of several settings with this name,
    the one with the fewest keys is found.

    Returns:
        The setting's dotted key, such as `model.d_model`; None if there is none.
    """
    schema = json_schema(settings_class)
    # The schemas of all mappings at one depth, by the beginning of their settings' dotted keys.
    level = {"": _schema_at(schema, keys)}
    # A schema that contains itself is searched once.
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
    """Return the part of a JSON Schema that describes the value to which `keys` lead."""
    value_schema = schema
    for key in keys:
        value_schema = _resolve_reference(schema, _schema_of_entry(value_schema, key))
    return value_schema


def _schema_of_entry(container_schema: dict[str, Any], key: str | int) -> dict[str, Any]:
    """Return the JSON Schema of an entry in a dataclass, a list, or a mapping with any names."""
    properties = container_schema.get("properties", {})
    if key in properties:
        entry_schema = properties[key]
    elif "items" in container_schema:
        entry_schema = container_schema["items"]
    elif "patternProperties" in container_schema:
        # A mapping whose names match a pattern; there is one pattern.
        (entry_schema,) = container_schema["patternProperties"].values()
    else:
        entry_schema = container_schema["additionalProperties"]
    return cast(dict[str, Any], entry_schema)


def _resolve_reference(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a JSON Schema, or the definition in `schema` to which the part refers."""
    if "anyOf" in part:
        # An optional setting: the first alternative is its type, the second is null.
        return _resolve_reference(schema, part["anyOf"][0])
    if "$ref" in part:
        # A reference is "#/$defs/NAME".
        name = part["$ref"].split("/")[-1]
        return cast(dict[str, Any], schema["$defs"][name])
    return part
