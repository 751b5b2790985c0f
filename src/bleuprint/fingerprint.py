"""Fingerprints: one SHA-256 for all that decides a result."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


def of_settings(*settings: Any) -> str:
    """The SHA-256 of settings (dataclasses, numbers, texts), in whatever order written."""
    text = json.dumps(list(map(_plain, settings)), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """What JSON can hold of settings; two rules may differ in nothing but their kind."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {type(value).__name__: _plain(fields)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, frozenset):
        return sorted(value)
    return value


@cache
def of_package() -> str:
    """The SHA-256 of all of this package's modules."""
    package = Path(__file__).parent
    paths = sorted(package.rglob("*.py"))
    return of_code(path.relative_to(package).with_suffix("").as_posix() for path in paths)


def of_code(modules: Iterable[str]) -> str:
    """The SHA-256 of the named modules of this package, as they lie on disk."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for module in sorted(modules):
        digest.update(f"{module}\0".encode())
        digest.update((package / f"{module}.py").read_bytes())
    return digest.hexdigest()
