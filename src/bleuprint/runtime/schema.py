"""YAML 1.2 to frozen dataclasses; unknown keys and values of a wrong type are errors.

PyYAML reads YAML 1.1, where `1e-05` is a string and `no` is False; ruamel reads 1.2, like DVC.
Errors name the file, the line, the key and the value, and the nearest known key.
"""

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.not_utf8 import not_utf8

T = TypeVar("T")

# The types that a setting may have: what is accepted, and the type in words.
_SCALARS: dict[type, tuple[Any, str]] = {
    float: (int | float, "a number"),
    int: (int, "a whole number"),
    bool: (bool, "true or false"),
    str: (str, "text"),
}
# A name that a user gives to an entry, as a regular expression, and its length in characters.
NAME = "[A-Za-z0-9][A-Za-z0-9_-]*"
MAX_NAME = 100
# The values of a document; a few lines of aliases may stand for billions.
MAX_VALUES = 1_000_000
# Characters that no file name, and no UTF-8, can hold.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class Range:
    """The bounds of a number, inclusive unless `open_low` or `open_high`."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def holds(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"{'above' if self.open_low else 'at least'} {self.low:.10g}"
        if not self.open_low and not self.open_high:
            return f"from {self.low:.10g} to {self.high:.10g}"
        below = f"{'below' if self.open_high else 'at most'} {self.high:.10g}"
        return f"{'above' if self.open_low else 'from'} {self.low:.10g}, {below}"


def _check_name(text: str, place: "_Place") -> None:
    """Names of the user's entries become names of files, stages and experiments."""
    if len(text) > MAX_NAME:
        raise place.error(f"a name of {len(text)} characters: at most {MAX_NAME}")
    if not re.fullmatch(NAME, text):
        raise place.error(
            "a name is of letters (a to z, A to Z), digits, '-' and '_', "
            f"and begins with a letter or digit, not {_shown(text)}"
        )


Name = Annotated[str, _check_name]
Count = Annotated[int, Range(1)]
Share = Annotated[float, Range(0, 1, open_high=True)]


@dataclasses.dataclass(frozen=True)
class Named:
    """A mapping from names of dataclasses to fields; read as a tuple in the order of `kinds`."""

    kinds: Mapping[str, type]


def load_yaml(path: Path) -> Any:
    """The document in `path` with its line numbers (ruamel's round-trip types)."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run from the project's root") from None
    except UnicodeDecodeError as error:
        raise not_utf8(path, BytesIO(error.object)) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, path: str) -> Any:
    """The same of the content of a file; `path` is for messages."""
    try:
        document = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = str(error.problem).partition(" with value")[0]
        hint = " (is it indented like its neighbors?)" if "<block" in problem else ""
        if re.match(" *\t", "".join(text.split("\n")[line - 1 : line])):
            problem, hint = "the line is indented with a tab: use spaces", ""
        raise UserError(f"{path}:{line}: not valid YAML: {problem}{hint}") from None
    except YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid YAML: nested too deeply") from None
    except ValueError as error:  # of Python, at a number or a date
        raise UserError(f"{path}: not valid YAML: {error}") from None
    except AttributeError:  # of ruamel, at a merge that is not read yet
        raise UserError(f"{path}: not valid YAML: an entry is merged (<<) into itself") from None
    if _size(document, {}) > MAX_VALUES:
        raise UserError(
            f"{path}: not valid YAML: an entry contains itself by an alias (*), or aliases repeat "
            f"entries until there are more than {MAX_VALUES:,}"
        )
    return document


def _size(value: Any, known: dict[int, float]) -> float:
    """How many values there are in one, each alias counted; infinite if it contains itself."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # as long as it is open
        entries = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_size(entry, known) for entry in entries)
    return known[id(value)]


class SettingError(ValueError):
    """An error of the entry at `keys` below a dataclass, raised by its `__post_init__`."""

    def __init__(self, keys: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.keys = keys


def build(kind: type[T], document: Any, path: Path) -> T:
    """A `kind`, a dataclass, from a YAML document; raises UserError at the first error."""
    return typing.cast(T, _value(kind, document, _Place(path)))


@dataclasses.dataclass(frozen=True)
class _Place:
    """A position in a document, for messages."""

    path: Path
    key: str = ""
    line: int | None = None

    def child(self, parent: Any, name: str | int) -> "_Place":
        key = f"{self.key}.{name}" if self.key else str(name)
        return _Place(self.path, key, line_of(parent, name) or self.line)

    def error(self, message: str) -> UserError:
        line = f":{self.line}" if self.line is not None else ""
        key = f" {self.key}:" if self.key else ""
        return UserError(f"{self.path}{line}:{key} {message}")


def line_of(parent: Any, name: str | int) -> int | None:
    """The line of `name`, from 1; merge keys (`<<`) are followed to the anchor."""
    marks = getattr(parent, "lc", None)
    if marks is None:
        return None
    try:
        position = marks.key(name) if isinstance(parent, Mapping) else marks.item(name)
        return int(position[0]) + 1
    except (KeyError, TypeError, AttributeError):
        bases = (base for base in getattr(parent, "merge", ()) if name in base)
        return next((line_of(base, name) for base in bases), None)


def _value(kind: Any, value: Any, place: _Place) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        if isinstance(arguments[1], Named):
            return _named(arguments[1].kinds, value, place)
        result = _value(arguments[0], value, place)
        for bound in arguments[1:]:
            if isinstance(bound, Range) and not bound.holds(result):
                raise place.error(f"{_shown(result)} is out of range: {bound}")
            if bound is _check_name:
                _check_name(result, place)
        return result
    if origin is Literal:
        if value not in arguments:
            known = ", ".join("true" if each is True else str(each) for each in arguments)
            raise place.error(f"{_shown(value)} is not one of {known}")
        return arguments[arguments.index(value)]
    if origin in (types.UnionType, typing.Union):
        kinds = [argument for argument in arguments if argument is not type(None)]
        if len(kinds) == 1:
            return None if value is None else _value(kinds[0], value, place)
    if origin is dict:
        return _mapping(arguments[1], value, place)
    if origin is tuple:
        return _sequence(arguments, value, place)
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, place)
    return _scalar(kind, value, place)


def _scalar(kind: type, value: Any, place: _Place) -> Any:
    if kind not in _SCALARS:  # in a user's rule
        name = kind.__qualname__ if type(kind) is type else kind
        raise place.error(
            f"declared as {name}, which no setting can be: "
            "int, float, bool, str, Literal, tuple, or one of these | None"
        )
    accepted, in_words = _SCALARS[kind]
    if kind is int and isinstance(value, float) and value.is_integer():  # 1e5
        value = int(value)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        text = value is not None and not isinstance(value, Mapping | list)
        hint = " (quote it: '...')" if kind is str and text else ""
        raise place.error(f"{_shown(value)} is not {in_words}{hint}")
    if kind is str and _UNSTORABLE.search(value):
        raise place.error(f"{_shown(value)} holds NUL or half of a surrogate pair")
    try:
        result = kind(value)
    except OverflowError:  # a whole number beyond floating point
        result = math.inf
    if kind is float and not math.isfinite(result):
        raise place.error(f"{_shown(value)} is not a finite number")
    return result


def _mapping(kind: Any, value: Any, place: _Place) -> dict[str, Any]:
    each = f", each with {_fields(kind)}" if dataclasses.is_dataclass(kind) else ""
    result = {}
    for name, entry, here in _entries(value, place, f"of names{each}"):
        if not isinstance(name, str):
            raise here.error(f"name {name!r} is not text: quote it")
        _check_name(name, here)
        result[str(name)] = _value(kind, entry, here)
    return result


def _entries(
    value: Any, place: _Place, expected: str, known: Collection[str] | None = None
) -> Iterator[tuple[Any, Any, _Place]]:
    """The keys, values and places of a mapping; raises UserError at a key that is not `known`."""
    if not isinstance(value, Mapping):
        raise place.error(f"{_shown(value)} is not a mapping {expected}")
    for name in value:
        if known is not None and name not in known:
            raise place.child(value, name).error(unknown(name, known))
    for name, entry in value.items():
        yield name, entry, place.child(value, name)


def _sequence(kinds: tuple[Any, ...], value: Any, place: _Place) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise place.error(f"{_shown(value)} is not a list: [...]")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    elif len(kinds) != len(value):
        raise place.error(f"{_shown(value)} has {len(value)} entries, not {len(kinds)}")
    pairs = zip(kinds, value, strict=True)
    return tuple(_value(kind, item, place.child(value, i)) for i, (kind, item) in enumerate(pairs))


def _record(kind: Any, value: Any, place: _Place) -> Any:
    fields, all_hints = dataclasses.fields(kind), typing.get_type_hints(kind, include_extras=True)
    hints = {field.name: all_hints[field.name] for field in fields}
    expected = f"with {_fields(kind)}" if fields else "without keys: {}"
    entries = _entries(value, place, expected, hints)
    given = {name: _value(hints[name], entry, here) for name, entry, here in entries}
    for field in fields:
        if field.default == () == given.get(field.name):
            here = place.child(value, field.name)
            raise here.error("is an empty list: give at least one entry, or leave the key out")
        if field.name not in given and field.default is dataclasses.MISSING:
            raise place.error(f"the key {field.name!r} is missing")
    try:
        return kind(**given)
    except ValueError as error:
        for key in error.keys if isinstance(error, SettingError) else ():
            place, value = place.child(value, key), value[key]
        raise place.error(str(error)) from None


def _named(kinds: Mapping[str, type], value: Any, place: _Place) -> tuple[Any, ...]:
    entries = _entries(value, place, f"of {', '.join(kinds)}", kinds)
    built = {name: _record(kinds[name], entry, here) for name, entry, here in entries}
    return tuple(built[name] for name in kinds if name in built)


def unknown(name: Any, known: Collection[str]) -> str:
    """What a message says of a key that is not known."""
    near = difflib.get_close_matches(str(name), known, n=1)
    names = f"known here: {', '.join(known)}" if known else "there are none here: {}"
    return f"unknown key; {f'did you mean {near[0]!r}?' if near else names}"


def _fields(kind: Any) -> str:
    return ", ".join(field.name for field in dataclasses.fields(kind))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as in YAML
    try:
        text = "an empty value" if value is None else repr(value)
    except ValueError:  # of Python, which prints no numbers of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
