"""Fingerprints: the SHA-256 of the settings and code that decide a result."""

import ast
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def of_settings(*settings: Any) -> str:
    """The SHA-256 of settings (dataclasses, numbers, strings); the order of keys does not count."""
    text = json.dumps(list(map(_plain, settings)), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Settings as JSON values; class names are included, since rules may have equal fields.

    What is not set (None) is left out, so that a new optional setting changes no fingerprint.
    """
    if dataclasses.is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        fields = {name: entry for name, entry in given.items() if entry is not None}
        return {type(value).__name__: _plain(fields)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, frozenset):
        return sorted(value)
    return value


def of_code(paths: Iterable[str], root: Path) -> str:
    """The SHA-256 of source files and of all files in folders, relative to `root`.

    Python files are compared by syntax tree: comments, docstrings and formatting do not count.
    """
    digest = hashlib.sha256()
    for file in files_of(paths, root):
        name = file.relative_to(root).as_posix()
        digest.update(f"{name}\0{of_file(name, file.read_bytes())}\n".encode())
    return digest.hexdigest()


def files_of(paths: Iterable[str], root: Path) -> list[Path]:
    """The files that `paths` name or contain, sorted, except compiled and hidden ones."""
    result: set[Path] = set()
    for path in paths:
        place = root / path
        files = place.rglob("*") if place.is_dir() else [place]
        result |= {
            file for file in files if file.is_file() and not _ignored(file.relative_to(root))
        }
    return sorted(result)


@cache
def of_file(name: str, content: bytes) -> str:
    """The SHA-256 of a file's syntax tree (Python), of its values (YAML), or of its bytes."""
    if name.endswith(".py"):
        with suppress(SyntaxError, ValueError):
            content = repr(_syntax(ast.parse(content))).encode()
    elif name.endswith(".yaml"):
        with suppress(YAMLError):
            content = repr(YAML(typ="safe").load(content)).encode()
    return hashlib.sha256(content).hexdigest()


def _ignored(path: Path) -> bool:
    return any(part == "__pycache__" or part.startswith(".") for part in path.parts)


def _syntax(node: Any) -> Any:
    """A syntax tree as nested tuples, without docstrings, positions and empty fields.

    ast.dump() differs between versions of Python, which add fields.
    """
    if isinstance(node, list):
        return tuple([_syntax(each) for each in node])
    if not isinstance(node, ast.AST):
        return node
    entries: list[Any] = [type(node).__name__]
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None or value == []:
            continue
        if name == "body" and _has_docstring(node):
            value = value[1:]
        entries.append((name, _syntax(value)))
    return tuple(entries)


def _has_docstring(node: ast.AST) -> bool:
    return isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None
