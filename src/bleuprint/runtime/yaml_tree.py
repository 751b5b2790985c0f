"""YAML 1.2 files as mappings and lists that know the file, line and key of each of their entries.

Messages about settings name the line of the setting, also after settings have been merged:
`load_located_yaml` returns mappings (`LocatedMapping`) and lists (`LocatedList`) that keep a
`Location` beside each value.

PyYAML reads YAML 1.1, where `1e-05` is a text and `no` is False; ruamel reads 1.2, as DVC does.
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
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.runtime.utf8 import utf8_error

# What ruamel raises besides its own errors: at a merge (<<) of a mapping into itself, and where
# Python fails at a number, a date, many brackets, or a list in the place of a name.
_PYTHON_ERRORS = (
    AttributeError,
    AssertionError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
# Errors of ruamel that wrong indentation or a missing space after a colon causes.
_INDENTATION_PROBLEM = re.compile("<block|mapping values|could not find expected ':'")


@dataclass(frozen=True)
class Location:
    """The location of a value in a YAML file, with which messages about the value begin.

    Attributes:
        path: The file.
        key: The dotted key, such as `systems.tiny.train`; empty for the whole document.
        line: The line, from 1; None for the whole document.
        is_merged: Whether YAML's merge key (<<) took the value from another mapping. The value then
            has no line of its own, and `line` is the line of the mapping that contains it.
    """

    path: Path
    key: str = ""
    line: int | None = None
    is_merged: bool = False

    def child(self, parent: Any, name: str | int) -> "Location":
        """Return the location of an entry of a mapping or list.

        Args:
            parent: The mapping or list, which is at this location. A `LocatedMapping` or
                `LocatedList` knows the locations of its entries.
            name: The name of the entry in a mapping, or its position in a list.

        Returns:
            The location of the entry. If it is not known, the location has the line of `parent`.
        """
        known_locations: Mapping[Any, Location] = getattr(parent, "locations", {})
        known_location = known_locations.get(name)
        if known_location is not None:
            return known_location
        return self.entry(name, self.line)

    def entry(self, name: str | int, line: int | None) -> "Location":
        """Return the location of an entry of this value.

        Args:
            name: The name of the entry in a mapping, or its position in a list.
            line: The line of the entry.
        """
        key = f"{self.key}.{name}" if self.key else str(name)
        return Location(self.path, key, line)

    def error(self, message: str) -> UserError:
        """Return an error about this value, with the message `FILE:LINE: KEY: MESSAGE`."""
        if self.key:
            return UserError(f"{self}: {message}")
        return UserError(f"{self} {message}")

    def __str__(self) -> str:
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.path}{line}: {self.key}" if self.key else f"{self.path}{line}:"


class LocatedMapping(dict[Any, Any]):
    """A mapping of a YAML file, with the location of each entry.

    Attributes:
        locations: The location of each entry by its name. It may also have locations of entries
            that the mapping no longer has.
    """

    def __init__(self, entries: Mapping[Any, Any], locations: Mapping[Any, Location]) -> None:
        super().__init__(entries)
        self.locations = dict(locations)

    def only(self, names: Collection[Any]) -> "LocatedMapping":
        """Return a copy that has only the entries with these names."""
        entries = {name: value for name, value in self.items() if name in names}
        return LocatedMapping(entries, self.locations)

    def without(self, *names: Any) -> "LocatedMapping":
        """Return a copy that lacks the entries with these names."""
        return self.only(self.keys() - names)

    def with_value(self, name: Any, value: Any, location: Location) -> "LocatedMapping":
        """Return a copy in which one entry is replaced or added.

        Args:
            name: The name of the entry.
            value: Its new value.
            location: Where the value is written, for messages about it.
        """
        copy = LocatedMapping(self, self.locations)
        copy[name] = value
        copy.locations[name] = location
        return copy


class LocatedList(list[Any]):
    """A list of a YAML file, with the location of each item.

    Attributes:
        locations: The location of each item by its position.
    """

    def __init__(self, items: list[Any], locations: Mapping[int, Location]) -> None:
        super().__init__(items)
        self.locations = dict(locations)


def as_mapping(value: Any) -> LocatedMapping:
    """Return a value if it is a mapping; if it is anything else, return an empty mapping.

    Code that reads a document before its validation can so look up entries without checking types.
    The validation reports a value of a wrong type later.
    """
    return value if isinstance(value, LocatedMapping) else LocatedMapping({}, {})


def load_located_yaml(path: Path) -> Any:
    """Load a YAML file whose mappings and lists know the lines of their entries.

    Mappings are loaded as `LocatedMapping` and lists as `LocatedList`, so that a message about a
    value can name its line.

    Raises:
        UserError: The file is missing, not UTF-8, or not YAML.
    """
    return with_locations(load_yaml(path), path)


def with_locations(document: Any, path: Path) -> Any:
    """Convert a document that ruamel.yaml has loaded into mappings and lists that know their lines.

    Args:
        document: The document.
        path: Its file.

    Raises:
        UserError: An entry contains itself.
    """
    try:
        return _with_locations(document, Location(path))
    except RecursionError:
        raise UserError(
            f"{path}: not valid YAML: an entry contains itself by an alias (*). Write it in full"
        ) from None


def _with_locations(value: Any, location: Location) -> Any:
    """Convert what ruamel.yaml has loaded into mappings and lists that know their lines.

    Args:
        value: A mapping, a list or a single value of the document.
        location: Where the value is in the file.
    """
    if isinstance(value, Mapping):
        entries: dict[Any, Any] = {}
        entry_locations: dict[Any, Location] = {}
        for name, entry in value.items():
            entry_locations[name] = _entry_location(location, value, name)
            entries[name] = _with_locations(entry, entry_locations[name])
        return LocatedMapping(entries, entry_locations)
    if isinstance(value, list):
        items: list[Any] = []
        item_locations: dict[int, Location] = {}
        for position, item in enumerate(value):
            item_locations[position] = _entry_location(location, value, position)
            items.append(_with_locations(item, item_locations[position]))
        return LocatedList(items, item_locations)
    return value


def _entry_location(location: Location, parent: Any, name: str | int) -> Location:
    """Return the location of an entry of a mapping or list that ruamel.yaml has loaded.

    Args:
        location: The location of the mapping or list.
        parent: The mapping or list.
        name: The name of the entry in a mapping, or its position in a list.
    """
    # ruamel.yaml keeps the line and column of each entry, from 0, in the attribute `lc`.
    marks: Any = getattr(parent, "lc", None)
    try:
        line, _column = marks.item(name) if isinstance(parent, list) else marks.key(name)
    except (KeyError, TypeError):
        # YAML's merge key (<<) has copied the entry from another mapping. ruamel.yaml does not keep
        # the line of such an entry, so it gets the line of the mapping that contains it now.
        return replace(location.entry(name, location.line), is_merged=True)
    return location.entry(name, line + 1)


def load_yaml(path: Path) -> Any:
    """Load a YAML file in the types of ruamel.yaml, which keep comments and formatting.

    From these types, the file can be written again as it was.

    Raises:
        UserError: The file is missing, not UTF-8, or not YAML.
    """
    try:
        text = read_bytes(path).decode().replace("\r\n", "\n")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. Run the command from the project's root") from None
    except UnicodeDecodeError as error:
        raise utf8_error(path, BytesIO(error.object)) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, path: str) -> Any:
    """Parse the content of a YAML file into ruamel's own types.

    Args:
        text: The content.
        path: The file, for messages.

    Raises:
        UserError: The text is not YAML; the message names the line.
    """
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        raise _error_at_mark(error, text, path) from None
    except YAMLError as error:
        raise _error_without_mark(error, text, path) from None
    except _PYTHON_ERRORS as error:
        raise _error_without_mark(error, text, path) from None


def _error_without_mark(error: Exception, text: str, path: str) -> UserError:
    """Return the error for text that is not YAML, with the line if it is known.

    Args:
        error: An error of ruamel.yaml or of Python. Some errors, such as the one about a control
            character in the file, have an attribute `position`: the index of the character.
        text: The content of the file.
        path: The file.
    """
    reason = str(error) or type(error).__name__
    first_line_of_reason = reason.splitlines()[0]
    position = getattr(error, "position", None)
    if position is None:
        return UserError(f"{path}: not valid YAML: {first_line_of_reason}")
    line_number = text.count("\n", 0, position) + 1
    return UserError(f"{path}:{line_number}: not valid YAML: {first_line_of_reason}")


def _error_at_mark(error: MarkedYAMLError, text: str, path: str) -> UserError:
    """Return the error for text that is not YAML, with the line and the likely mistake.

    Args:
        error: The error of ruamel.yaml, which marks the line.
        text: The content of the file.
        path: The file.
    """
    line_number = error.problem_mark.line + 1 if error.problem_mark else 1
    line = text.split("\n")[line_number - 1]
    if line.lstrip(" ").startswith("\t"):
        problem = "the line is indented with a tab. Use spaces"
    else:
        problem = str(error.problem).partition(" with value")[0]
        if _INDENTATION_PROBLEM.search(problem):
            problem += ". Is it indented like its neighbors, with a space after each colon?"
    return UserError(f"{path}:{line_number}: not valid YAML: {problem}")
