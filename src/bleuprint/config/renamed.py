"""Settings by their former names, which params.yaml files written for earlier versions have."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bleuprint.rules import CHECKS, EDITS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import line_of


@cache
def tables() -> tuple[dict[str, str], dict[str, str]]:
    """Former keys, each with its name now, and former values, as KEY: VALUE; * is any name."""
    read = YAML(typ="safe").load(Path(__file__).with_suffix(".yaml"))
    return read["keys"], read["values"]


@cache
def _patterns() -> list[dict[re.Pattern[str], str]]:
    """Both tables, compiled."""
    return [
        {
            re.compile(old.replace(".", r"\.").replace("*", "[^.]+")): new
            for old, new in each.items()
        }
        for each in tables()
    ]


def refusal(document: Any, path: Path) -> UserError | None:
    """An error that names every former name in a document, with its lines; None without any."""
    former = list(_former("", 1, document))
    if not former:
        return None
    line, key, _, new = former[0]
    text = f"{path}:{line}: {key} renamed to {new}"
    lines: dict[str, set[int]] = {}  # merged (<<) settings occur several times
    for each in former:
        lines.setdefault(f"{each[2]} to {each[3]}", set()).add(each[0])
    if len(lines) == 1 and len(*lines.values()) == 1:
        return UserError(text)
    every = (f"{names} ({', '.join(map(str, sorted(at)))})" for names, at in lines.items())
    return UserError(f"{text}; all of them, with their lines: {', '.join(every)}")


def _former(key: str, line: int, value: Any) -> Iterator[tuple[int, str, str, str]]:
    """Former names in a value: line, place, former name and new name."""
    keys, values = _patterns()
    if isinstance(value, list):
        for inner in value:
            yield from _former(key, line, inner)
        return
    if not isinstance(value, Mapping):
        written = f"{key}: {value}" if isinstance(value, str) else ""
        for pattern, new in values.items():
            if pattern.fullmatch(written):
                yield line, written, str(value), new
        return
    for name, inner in value.items():
        inner_key, inner_line = f"{key}.{name}".lstrip("."), line_of(value, name) or line
        for pattern, new in keys.items():
            if pattern.fullmatch(inner_key) and name not in (*EDITS, *CHECKS):
                yield inner_line, f"{inner_key}:", str(name), new
        yield from _former(inner_key, inner_line, inner)
