"""downloads.lock: the SHA-256 of files that params.yaml gives none for.

It lies at the project's root and is committed: a later download of the same URL, from any host or
mirror, must have the same bytes.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, sha256_of, write_json


class Sum(NamedTuple):
    """The SHA-256 of a file, in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


def read_lock(lock: Path) -> dict[str, Sum]:
    """The recorded sums by URL; raises UserError if the file is damaged."""
    entries = read_object(lock) if lock.exists() else {}
    return {url: _sum(entry, url, lock) for url, entry in entries.items()}


def record(lock: Path, url: str, path: Path, guard: Path) -> None:
    """Record the sum of the file at `path`, downloaded from `url`, unless it is recorded.

    `guard` is locked meanwhile, so that processes that record at once lose no entry. Raises
    UserError if another sum is recorded.
    """
    found = Sum(sha256_of(path), path.stat().st_size)
    with FileLock(guard):
        sums = read_lock(lock)
        known = sums.setdefault(url, found)
        if known != found:
            raise UserError(
                f"{url}: expected SHA-256 {known.sha256} ({known.size} bytes), found "
                f"{found.sha256} ({found.size} bytes); {how_to_accept(lock, url)}"
            )
        _write(lock, sums)


def forget(lock: Path, url: str, guard: Path) -> None:
    """Remove the entry of a file that turned out to be damaged."""
    with FileLock(guard):
        sums = read_lock(lock)
        if sums.pop(url, None) is not None:
            _write(lock, sums)


def how_to_accept(lock: Path, url: str) -> str:
    """The advice for a file that was changed on purpose."""
    return (
        f"to accept the new file, remove the entry {url} from {lock} and what is in work/downloads"
    )


def _write(lock: Path, sums: dict[str, Sum]) -> None:
    write_json(lock, {url: sums[url]._asdict() for url in sorted(sums)})


def _sum(entry: Any, url: str, lock: Path) -> Sum:
    match entry:
        case {"sha256": str(sha256), "size": int(size), **rest} if not rest:
            if re.fullmatch("[0-9a-f]{64}", sha256) and type(size) is int and size >= 0:
                return Sum(sha256, size)
    raise UserError(
        f"{lock}: {url}: needs sha256, 64 hexadecimal digits, and size, a number of bytes; "
        f"found {json.dumps(entry)}"
    )
