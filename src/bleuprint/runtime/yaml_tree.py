"""YAML 1.2 files as mappings and lists that know where each of their entries stands.

PyYAML reads YAML 1.1, where `1e-05` is a string and `no` is False; ruamel reads 1.2, like DVC.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.utf8 import not_utf8

# The values of a document; a few lines of aliases may stand for billions.
MAX_VALUES = 1_000_000
# Characters that no file name, and no UTF-8, can hold.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """Where a value stands: its file, line (from 1) and dotted key."""

    path: Path
    key: str = ""
    line: int | None = None

    def child(self, parent: Any, name: str | int) -> "Place":
        """The place of `parent[name]`, where `parent` is the value at this place."""
        if known := getattr(parent, "places", {}).get(name):
            return known  # type: ignore[no-any-return]
        key = f"{self.key}.{name}" if self.key else str(name)
        return Place(self.path, key, self.line)

    def error(self, message: str) -> UserError:
        return UserError(f"{self}{':' if self.key else ''} {message}")

    def __str__(self) -> str:
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.path}{line}: {self.key}" if self.key else f"{self.path}{line}:"


class Tree(dict[Any, Any]):
    """A mapping, and the place of each entry by its key."""

    def __init__(self, entries: Mapping[Any, Any], places: Mapping[Any, Place]) -> None:
        super().__init__(entries)
        self.places = dict(places)


class Items(list[Any]):
    """A list, and the place of each item by its position."""

    def __init__(self, items: list[Any], places: Mapping[int, Place]) -> None:
        super().__init__(items)
        self.places = dict(places)


def load_tree(path: Path) -> Any:
    """The document in a file, its mappings as `Tree` and its lists as `Items`."""
    return _tree(load_yaml(path), Place(path))


def load_yaml(path: Path) -> Any:
    """The document in a file, in ruamel's round-trip types."""
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


def _tree(value: Any, place: Place) -> Any:
    if isinstance(value, Mapping):
        places = {name: _child(place, value, name) for name in value}
        return Tree({name: _tree(value[name], places[name]) for name in value}, places)
    if isinstance(value, list):
        places = {i: _child(place, value, i) for i in range(len(value))}
        return Items([_tree(item, places[i]) for i, item in enumerate(value)], places)
    if isinstance(value, str) and _UNSTORABLE.search(value):
        raise place.error(f"{value!r} holds NUL or half of a surrogate pair")
    return value


def _child(place: Place, parent: Any, name: str | int) -> Place:
    key = f"{place.key}.{name}" if place.key else str(name)
    return Place(place.path, key, _line_of(parent, name) or place.line)


def _line_of(parent: Any, name: str | int) -> int | None:
    """The line of `name`, from 1; merge keys (`<<`) are followed to the anchor."""
    marks = getattr(parent, "lc", None)
    try:
        find = marks.key if isinstance(parent, Mapping) else marks.item  # type: ignore[union-attr]
        return int(find(name)[0]) + 1
    except (KeyError, TypeError, AttributeError):
        bases = (base for base in getattr(parent, "merge", ()) if name in base)
        return next((_line_of(base, name) for base in bases), None)


def _size(value: Any, known: dict[int, float]) -> float:
    """How many values there are in one, each alias counted; infinite if it contains itself."""
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # as long as it is open
        entries = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_size(entry, known) for entry in entries)
    return known[id(value)]
