"""Inserting an entry into `corpora` of a params.yaml, whose other lines stay as they are.

Its comments, anchors and line breaks would not survive a round trip through a YAML library.
"""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_file
from bleuprint.runtime.yaml_tree import load_yaml


def insert_corpus(path: Path, name: str, entry: str, example: Path | None = None) -> str | None:
    """Add an entry to `corpora`, as the last one; returns the name of the one that it replaces.

    `entry`: its lines, indented by two spaces, the first of which is `  NAME:`. An entry that is
    word for word the first one of `example`, a recipe, is replaced: it stands for the user's.
    Raises UserError, and leaves the file as it was, if there is an entry of that name, if `corpora`
    is not written line by line, or if the file would not be valid.
    """
    load(path)
    document, lines, entries = _read(path)
    replaced = replaced_by(path, name, example)
    end = "\r" if lines[0].endswith("\r") else ""
    new = [f"{line}{end}" for line in entry.rstrip("\n").split("\n")]
    last = [*entries.values()][-1]
    place = range(last.stop, last.stop) if replaced is None else entries[replaced]
    first = next(iter(entries))
    gap = [end] if replaced is None else []
    indent = " " * (document["corpora"].lc.data[first][1] - 2)
    lines[place.start : place.stop] = [*gap, *(f"{indent}{line}" for line in new)]
    _write(path, "\n".join(lines), name, replaced)
    return replaced


def replaced_by(path: Path, name: str, example: Path | None = None) -> str | None:
    """The name of the entry in whose place `insert_corpus` would put `name`, if there is one.

    Raises UserError if another entry has the name.
    """
    _, lines, entries = _read(path)
    given = _example(example)
    replaced = next((each for each, text in entries.items() if _text(lines, text) == given), None)
    if name in entries and name != replaced:
        line = entries[name].start + 1
        raise UserError(f"{path}:{line}: corpora has an entry {name} already: rename it first")
    return replaced


def _read(path: Path) -> tuple[Any, list[str], dict[str, range]]:
    """A params.yaml, its lines, and which of them are entries of `corpora`."""
    document = load_yaml(path)
    lines = path.read_bytes().decode().split("\n")
    return document, lines, _entries(document, lines, path)


def _entries(document: Any, lines: list[str], path: Path) -> dict[str, range]:
    """The lines of each entry, counted from 0, without blank lines and comments after it."""
    corpora = document["corpora"]
    if corpora.fa.flow_style():
        raise UserError(f"{path}: corpora is written in braces: write its entries line by line")
    starts = {name: place[0] for name, place in corpora.lc.data.items()}
    after = [line for line, *_ in document.lc.data.values() if line > max(starts.values())]
    entries = {}
    for name, start in starts.items():
        stop = min([each for each in starts.values() if each > start] or after or [len(lines)])
        while not lines[stop - 1].strip() or lines[stop - 1].startswith(("#", "...")):
            stop -= 1
        entries[name] = range(start, stop)
    return entries


def _text(lines: list[str], place: range) -> list[str]:
    return [line.rstrip("\r") for line in lines[place.start : place.stop]]


def _example(path: Path | None) -> list[str] | None:
    """The lines of a recipe's first entry."""
    if path is None or not path.exists():
        return None
    _, lines, entries = _read(path)
    return _text(lines, next(iter(entries.values())))


def _write(path: Path, text: str, name: str, replaced: str | None) -> None:
    """Put `text` in place of the file if it is valid and holds the other entries unchanged."""
    with whole_file(path) as partial:
        partial.write_bytes(text.encode())
        try:
            load(partial)
        except UserError as error:
            message = str(error).replace(str(partial), str(path))
            raise UserError(f"{message}; {path} is left as it was") from None
        before, after = (YAML(typ="safe").load(each) for each in (path, partial))
        before["corpora"].pop(replaced, None)
        del after["corpora"][name]
        if after != before:
            raise UserError(f"{path}: the entry {name} would change another one")
