"""YAML 1.2 files as mappings and lists that know where each of their entries stands.

PyYAML reads YAML 1.1, where `1e-05` is a string and `no` is False; ruamel reads 1.2, like DVC.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_bytes
from bleuprint.runtime.utf8 import utf8_error

# What ruamel raises at documents that it does not expect, beside its own errors.
_NOT_YAML = (AttributeError, AssertionError, LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True)
class Location:
    """Where a value stands: its file, line (from 1) and dotted key.

    `is_merged`: it comes from another mapping (<<), and the line is that of the mapping around it.
    """

    path: Path
    key: str = ""
    line: int | None = None
    is_merged: bool = False

    def child(self, parent: Any, name: str | int) -> "Location":
        """The place of `parent[name]`, where `parent` is the value at this place."""
        if known := getattr(parent, "locations", {}).get(name):
            return known  # type: ignore[no-any-return]
        return self.at(name, self.line)

    def at(self, name: str | int, line: int | None) -> "Location":
        """The place of the entry `name` of this one, in a line."""
        return Location(self.path, f"{self.key}.{name}" if self.key else str(name), line)

    def error(self, message: str) -> UserError:
        return UserError(f"{self}{':' if self.key else ''} {message}")

    def __str__(self) -> str:
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.path}{line}: {self.key}" if self.key else f"{self.path}{line}:"


class LocatedMapping(dict[Any, Any]):
    """A mapping, and the place of each entry by its key."""

    def __init__(self, entries: Mapping[Any, Any], places: Mapping[Any, Location]) -> None:
        super().__init__(entries)
        self.locations = dict(places)

    def only(self, names: Collection[Any]) -> "LocatedMapping":
        """The entries of these names."""
        return LocatedMapping(
            {name: value for name, value in self.items() if name in names}, self.locations
        )

    def without(self, *names: Any) -> "LocatedMapping":
        """All entries but those of these names."""
        return self.only(self.keys() - names)

    def with_value(self, name: Any, value: Any, place: Location) -> "LocatedMapping":
        """The same with another value of an entry, which stands at `place`."""
        return LocatedMapping({**self, name: value}, self.locations | {name: place})


def as_mapping(value: Any) -> LocatedMapping:
    """A mapping, or an empty one for a value that is none."""
    return value if isinstance(value, LocatedMapping) else LocatedMapping({}, {})


class LocatedList(list[Any]):
    """A list, and the place of each item by its position."""

    def __init__(self, items: list[Any], places: Mapping[int, Location]) -> None:
        super().__init__(items)
        self.locations = dict(places)


def load_located_yaml(path: Path) -> Any:
    """The document in a file, its mappings as `LocatedMapping` and its lists as `LocatedList`."""
    document = load_yaml(path)
    try:
        return _tree(document, Location(path))
    except RecursionError:
        raise UserError(
            f"{path}: not valid YAML: an entry contains itself by an alias (*): write it in full"
        ) from None


def load_yaml(path: Path) -> Any:
    """The document in a file, in ruamel's round-trip types."""
    try:
        text = read_bytes(path).decode().replace("\r\n", "\n")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run from the project's root") from None
    except UnicodeDecodeError as error:
        raise utf8_error(path, BytesIO(error.object)) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, path: str) -> Any:
    """The same of the content of a file; `path` is for messages."""
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = str(error.problem).partition(" with value")[0]
        hint = " (is it indented like its neighbors, with a space after each colon?)"
        if not re.search("<block|mapping values|could not find expected ':'", problem):
            hint = ""
        if text.split("\n")[line - 1 : line][0].lstrip(" ").startswith("\t"):
            problem, hint = "the line is indented with a tab: use spaces", ""
        raise UserError(f"{path}:{line}: not valid YAML: {problem}{hint}") from None
    # of ruamel, at a merge (<<) into itself, and of Python, at a number, a date, many brackets, or
    # a list in place of a name
    except (YAMLError, *_NOT_YAML) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        at = getattr(error, "position", None)
        line = "" if at is None else f":{text.count(chr(10), 0, at) + 1}"
        raise UserError(f"{path}{line}: not valid YAML: {reason}") from None


def _tree(value: Any, place: Location) -> Any:
    if isinstance(value, Mapping):
        places = {name: _child(place, value, name) for name in value}
        return LocatedMapping({name: _tree(value[name], places[name]) for name in value}, places)
    if isinstance(value, list):
        places = {i: _child(place, value, i) for i in range(len(value))}
        return LocatedList([_tree(item, places[i]) for i, item in enumerate(value)], places)
    return value


def _child(place: Location, parent: Any, name: str | int) -> Location:
    try:
        marks: Any = getattr(parent, "lc", None)
        line, _ = marks.item(name) if isinstance(parent, list) else marks.key(name)
        return place.at(name, line + 1)
    except (KeyError, TypeError):
        return replace(place.at(name, place.line), is_merged=True)
