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
    keys, values = tables()
    if isinstance(value, list):
        for inner in value:
            yield from _former(key, line, inner)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            inner_key, inner_line = f"{key}.{name}".lstrip("."), line_of(value, name) or line
            new = _new_name(keys, inner_key)
            if new and name not in (*EDITS, *CHECKS):
                yield inner_line, f"{inner_key}:", str(name), new
            yield from _former(inner_key, inner_line, inner)
    elif isinstance(value, str) and (new := _new_name(values, f"{key}: {value}")):
        yield line, f"{key}: {value}", value, new


def _new_name(table: Mapping[str, str], former: str) -> str | None:
    """The new name that a table has for a former one; None if it has none."""
    for old, new in table.items():
        if re.fullmatch(old.replace(".", r"\.").replace("*", "[^.]+"), former):
            return new
    return None
