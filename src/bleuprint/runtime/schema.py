"""Documents, such as params.yaml and the records of runs, read into frozen dataclasses.

pydantic checks each document against its dataclass: unknown keys, missing keys, types and ranges,
and what `__post_init__` refuses by a ValueError. Code that builds a dataclass itself runs no such
check, since the dataclasses are the standard library's.

- `validate_document` checks settings that a user writes. It reports all errors at once, each with
  its file, line and key.
- `read_record` and `check_record` check files that this program writes. They report the
  first error.

The validators are made in `pydantic_adapters`. The second half of this module writes the messages;
`schema_keys` finds the keys that they suggest.
"""

import difflib
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from annotated_types import Ge, Interval
from pydantic import StringConstraints
from pydantic_core import ErrorDetails, ValidationError

from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.file_errors import RERUN, DamagedFile
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.pydantic_adapters import field_validator, strict_validator, type_adapter
from bleuprint.runtime.schema_keys import Keys, find_deeper_key, has_entry, known_keys
from bleuprint.runtime.tag_pattern import LANGUAGE_TAG, MEMORY_LANGUAGE_TAG
from bleuprint.runtime.wording import counted
from bleuprint.runtime.yaml_tree import Location

T = TypeVar("T")

# A name that a user gives to an entry becomes a part of names of files, stages and experiments.
NAME = "^[A-Za-z0-9][A-Za-z0-9_-]*$"
MAX_NAME = 100
_LANGUAGE = f"^{LANGUAGE_TAG}$"
_NOT_BLANK = r"\S"
_SHA256 = "^[0-9a-f]{64}$"
_MD5 = "^[0-9a-f]{32}$"

# Types of fields that several documents have.
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=MAX_NAME)]
Language = Annotated[str, StringConstraints(pattern=_LANGUAGE)]
# The language code of a translation memory, perhaps with a script or a region: zh-Hant, en-GB.
MemoryLanguage = Annotated[str, StringConstraints(pattern=MEMORY_LANGUAGE_TAG)]
NotBlank = Annotated[str, StringConstraints(pattern=_NOT_BLANK)]
Sha256 = Annotated[str, StringConstraints(pattern=_SHA256)]
Md5 = Annotated[str, StringConstraints(pattern=_MD5)]
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
    "greater_than_equal": "is out of range: it must be at least {ge:.10g}",
    "greater_than": "is out of range: it must be above {gt:.10g}",
    "less_than_equal": "is out of range: it must be at most {le:.10g}",
    "less_than": "is out of range: it must be below {lt:.10g}",
}
# What a message says about a text that does not match a pattern; {} is the text.
_PATTERN_PROBLEMS = {
    _LANGUAGE: "a language is a tag such as 'de', 'pt-BR', 'zh-Hant' or 'zho_Hant', not {}",
    MEMORY_LANGUAGE_TAG: "a language code is one such as 'en', 'en-GB' or 'zh-Hant', not {}",
    _NOT_BLANK: "{} is blank: write some text",
    _MD5: "an MD5 is 32 hexadecimal digits, lower case, not {}",
    _SHA256: "a SHA-256 is 64 hexadecimal digits, lower case, not {}",
}
_NAME_PROBLEM = (
    f"a name is of letters (a to z, A to Z), digits, '-' and '_', at most {MAX_NAME}, and begins "
    "with a letter or digit, not {}"
)
# What a message adds to a field of a record that is missing or unknown.
_OTHER_VERSION = ", as in a file that another version wrote"
_MAX_VALUE_CHARACTERS = 60
_MAX_EXAMPLE_KEYS = 4


class SettingError(ValueError):
    """An error of one setting, raised by the `__post_init__` of a dataclass that contains it.

    pydantic knows only for which dataclass `__post_init__` was called. The keys tell which of its
    settings is wrong.

    Attributes:
        keys: The keys that lead from the dataclass to the setting.
    """

    def __init__(self, keys: Keys, message: str) -> None:
        """Create the error.

        Args:
            keys: The keys that lead to the setting, such as `("model", "d_model")`.
            message: What is wrong with the setting.
        """
        super().__init__(message)
        self.keys = keys


def validate_document(
    settings_class: type[T], document: Any, path: Path, errors: Sequence[UserError] = ()
) -> T:
    """Build a dataclass of settings from a document that a user has written, such as params.yaml.

    All errors are reported at once, so that the user can correct them in one go.

    Args:
        settings_class: The dataclass.
        document: The parsed document. If it is a `LocatedMapping`, messages name the lines.
        path: The document's file, for messages.
        errors: Errors that were found before; they are reported, too. Entries with such errors are
            missing from `document`. Therefore each field is checked alone; the `__post_init__` of
            the dataclass, which checks whether the fields fit together, is not called.

    Raises:
        UserErrors: The document has errors, or `errors` is not empty; there is one line for each.
    """
    lines = [str(error) for error in errors]
    is_incomplete = bool(errors)
    dataclass_type = cast(Any, settings_class)
    if is_incomplete:
        validator = field_validator(dataclass_type)
    else:
        validator = strict_validator(dataclass_type)
    try:
        settings = validator.validate_python(document)
    except ValidationError as error:
        details = error.errors()
        if is_incomplete:
            # A section without its only entry, which has an error, is not a second mistake.
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
        raise UserError(f"{path}: no such file. {remedy}") from None
    return check_record(record_type, content, path, remedy)


def check_record(
    record_type: type[T], content: Any, path: Path, remedy: str = RERUN, keys: Sequence[str] = ()
) -> T:
    """Build a record from the parsed content of a JSON file, or from a part of the content.

    An error means that the file, which this program writes itself, is damaged or of another
    version. Only the first wrong field is reported.

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
    # The dotted key of the field in the whole file, such as `train.seed`.
    field_key = ".".join(str(key) for key in [*keys, *keys_of(detail)])
    field = f"field {field_key}" if field_key else "the whole file"
    cause = cause_of(detail)
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
    """Convert a dataclass into values that JSON can write, such as dictionaries and numbers.

    Fields that are None are skipped. `validate_document` converts the values back.
    """
    value_type: Any = type(value)
    return type_adapter(value_type).dump_python(
        value, mode="json", by_alias=True, exclude_none=True
    )


def describe_unknown_key(name: object, known_names: Collection[str]) -> str:
    """Describe an unknown key, and suggest the known key that is spelled most like it.

    Without a similar key, all known keys are listed.

    Args:
        name: The key that the user has written.
        known_names: The keys that are allowed in its place.
    """
    # A name such as `2024` is a number for YAML.
    known_texts = [str(known_name) for known_name in known_names]
    if not known_texts:
        return "unknown key. Write {}"
    # Other toolkits call an update a step: suggest max_updates for max_steps.
    searched_key = str(name).replace("step", "update")
    nearest_keys = difflib.get_close_matches(searched_key, known_texts, n=1)
    if nearest_keys:
        return f"unknown key. Did you mean {nearest_keys[0]!r}?"
    return f"unknown key. Known keys: {', '.join(known_texts)}"


def list_known_names(name: object, known_names: Collection[str]) -> str:
    """List all known names for a message about an unknown name, and suggest a similar one.

    Args:
        name: The name that the user has written, such as a system's.
        known_names: The names that exist.
    """
    known_texts = [str(known_name) for known_name in known_names]
    if not known_texts:
        return "there are none"
    message = f"there are: {', '.join(known_texts)}"
    nearest_names = difflib.get_close_matches(str(name), known_texts, n=1)
    if nearest_names:
        message += f". Did you mean {nearest_names[0]!r}?"
    return message


def _describe_errors(
    details: Sequence[ErrorDetails], document: Any, path: Path, settings_class: type[Any]
) -> list[str]:
    """Return a line for each error of a document; an error in several places gets only one line.

    A system can take settings from another system (`like: NAME`), so that pydantic finds one wrong
    value in both. The line is about the first place, and ends with the keys of the other places:
    "(also KEY)".

    Args:
        details: The errors that pydantic reports.
        document: The document.
        path: The document's file, for messages.
        settings_class: The dataclass of the whole document.
    """
    # For each error, the lines about its places.
    lines_by_error: dict[str, list[str]] = {}
    for detail in details:
        line = _describe_error(detail, document, path, settings_class)
        cause = cause_of(detail)
        error = line if cause is None else str(cause)
        lines = lines_by_error.setdefault(error, [])
        if line not in lines:
            lines.append(line)
    described = []
    for first_line, *other_lines in lines_by_error.values():
        # A line has the form "FILE:LINE: KEY: MESSAGE".
        other_keys = [line.split(": ")[1] for line in other_lines]
        also = f" (also {', '.join(other_keys)})" if other_keys else ""
        described.append(first_line + also)
    return described


def _describe_error(
    detail: ErrorDetails, document: Any, path: Path, settings_class: type[Any]
) -> str:
    """Return the message about one error of a document, in the form "FILE:LINE: KEY: MESSAGE".

    Args:
        detail: The error that pydantic reports.
        document: The document.
        path: The document's file.
        settings_class: The dataclass of the whole document.
    """
    keys = keys_of(detail)
    cause = cause_of(detail)
    if isinstance(cause, SettingError):
        keys.extend(cause.keys)
    if detail["type"] == "missing":
        # A missing key has no line. The message shows the line of the mapping that lacks the key.
        keys.pop()
    # Follow the keys from the whole document to the wrong value.
    location = Location(path)
    value = document
    for key in keys:
        location = location.child(value, key)
        value = value[key] if has_entry(value, key) else None
    if cause is None:
        message = describe_pydantic_error(detail, keys, settings_class)
    else:
        message = str(cause)
        location = _refine_location(location, message, value)
    return str(location.error(message))


def _refine_location(location: Location, message: str, value: Any) -> Location:
    """Find the line of the setting that a message about a section is about.

    A dataclass that checks its own fields raises an error such as `max_tokens: too small`, whose
    location is the whole section. The user wants to see the line of max_tokens.

    Args:
        location: The location of the section, such as `train`.
        message: The message, which may begin with the key of a setting.
        value: The section, in which the setting is looked up.

    Returns:
        The location with the line of the setting; `location` itself if the message names none, or
        if the section has taken the setting from another system (`like: NAME`).
    """
    named_key = message.partition(" ")[0].rstrip(":")
    key_location = location
    for key in named_key.split("."):
        if not has_entry(value, key):
            return location
        key_location = key_location.child(value, key)
        value = value[key]
    # The first two keys name a system: `systems.NAME`.
    is_in_same_system = key_location.key.split(".")[:2] == location.key.split(".")[:2]
    if not is_in_same_system:
        return location
    # The message begins with the key of the setting, so the location gets only the section's key.
    section_key = key_location.key.removesuffix(f".{named_key}")
    return Location(key_location.path, section_key, key_location.line)


def describe_pydantic_error(detail: ErrorDetails, keys: Keys, settings_class: type[Any]) -> str:
    """Describe an error that pydantic itself has found in settings, such as a missing key.

    Args:
        detail: The error.
        keys: The keys that lead to the wrong value. If a key is missing, those that lead to the
            mapping that lacks it.
        settings_class: The dataclass of the whole document.
    """
    value_text = _quote_value(detail["input"])
    match detail["type"]:
        case "missing":
            missing_key = detail["loc"][-1]
            return _describe_missing_key(missing_key, keys)
        case "unexpected_keyword_argument" | "extra_forbidden" | "invalid_key":
            return _describe_misplaced_key(keys, settings_class)
        case "string_pattern_mismatch" | "string_too_long":
            pattern = detail.get("ctx", {}).get("pattern", "")
            return _PATTERN_PROBLEMS.get(pattern, _NAME_PROBLEM).format(value_text)
        case "string_type" if detail["loc"][-1] == "[key]":
            # pydantic reports a wrong name of an entry, and not a wrong value, as "[key]".
            return f"name {value_text} is not text. Quote it"
        case "dataclass_type":
            first_keys = known_keys(settings_class, keys)[:_MAX_EXAMPLE_KEYS]
            example = ", ".join(f"{key}: ..." for key in first_keys)
            if example:
                return f"{value_text} is not a mapping: {{{example}}}"
    return _describe_wrong_value(detail)


def _describe_missing_key(missing_key: str | int, keys: Keys) -> str:
    """Say that a key is missing, and how a system can take its value from another system.

    Args:
        missing_key: The key.
        keys: The keys that lead to the mapping that lacks it: `runs.SYSTEM.CORPUS.SECTION`.
    """
    message = f"the key {missing_key!r} is missing"
    # `like` takes over whole settings of sections (4 keys), and nothing from deeper mappings.
    can_be_taken_from_other_system = keys[:1] == ["runs"] and len(keys) <= 4
    if can_be_taken_from_other_system:
        message += ". `like: NAME` takes missing settings from the system NAME"
    return message


def _describe_misplaced_key(keys: Keys, settings_class: type[Any]) -> str:
    """Describe an unknown key, and suggest a deeper place for it or the keys that are known here.

    Args:
        keys: The keys that lead to the unknown key, which is the last of them.
        settings_class: The dataclass of the whole document.
    """
    *parent_keys, name = keys
    deeper_key = find_deeper_key(settings_class, parent_keys, name)
    if deeper_key is not None:
        return f"unknown key. Did you mean {deeper_key!r}?"
    return describe_unknown_key(name, known_keys(settings_class, parent_keys))


def _describe_wrong_value(detail: ErrorDetails) -> str:
    """Quote a wrong value, and say what is wrong with it: "'3' is not a whole number"."""
    value_text = _quote_value(detail["input"])
    if detail["type"] not in _PROBLEMS:
        # pydantic's own message is used, such as "Input should be a valid date".
        return f"{value_text} {detail['msg'].replace('Input should', 'should')}"
    # The limits that the value violates, by the names that the texts in `_PROBLEMS` refer to.
    limits = dict(detail.get("ctx", {}))
    length = limits.get("min_length", limits.get("max_length"))
    if length is not None:
        limits["entries"] = counted(length, "entry", "entries")
    if "expected" in limits:
        # pydantic writes "'post' or 'pre'", and True where YAML has true.
        expected = limits["expected"].replace(" or ", ", ").replace("'", "")
        limits["expected"] = expected.replace("True", "true")
    return f"{value_text} {_PROBLEMS[detail['type']].format_map(limits)}"


def keys_of(detail: ErrorDetails) -> list[str | int]:
    """Return the keys that lead to the value with an error, such as `["train", "seed"]`."""
    # pydantic adds "[key]" if not the value is wrong, but its name in the mapping.
    return [key for key in detail["loc"] if key != "[key]"]


def cause_of(detail: ErrorDetails) -> ValueError | None:
    """Return the ValueError by which a dataclass itself has refused its values, if there is one.

    The `__post_init__` of the dataclass has raised it. pydantic adds it to its own errors, and
    keeps the exception in the context `ctx`. For an error of pydantic itself, None is returned.
    """
    return detail.get("ctx", {}).get("error")


def _quote_value(value: Any) -> str:
    """Return a value as a message shows it: quoted as in Python, and cut if it is long."""
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
