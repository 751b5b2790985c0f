"""Fingerprints: one SHA-256 for all that decides a result."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any


def of_settings(*settings: Any) -> str:
    """The SHA-256 of settings (dataclasses, numbers, texts), in whatever order written."""
    plain = [dataclasses.asdict(s) if dataclasses.is_dataclass(s) else s for s in settings]  # type: ignore[arg-type]
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


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
