"""downloads.lock: what the files whose manifest gives no sum held when they were first fetched.

It lies at the project's root, to be committed: whoever fetches one of these files later, from
wherever it may be, gets the same bytes or is told that they have changed.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of, write_json


class Sum(NamedTuple):
    """What tells a file from another: its SHA-256, in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


def read_lock(lock: Path) -> dict[str, Sum]:
    """The sums recorded so far, by URL; raises UserError where the file is not as we write it."""
    if not lock.exists():
        return {}
    try:
        entries = json.loads(lock.read_bytes())
    except json.JSONDecodeError as error:
        raise UserError(f"{lock}:{error.lineno}: not valid JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{lock}: not UTF-8: byte {error.start + 1}") from None
    if not isinstance(entries, dict):
        raise UserError(f"{lock}: holds no entries of the form URL: {{sha256, size}}")
    return {url: _sum(entry, url, lock) for url, entry in entries.items()}


def record(lock: Path, url: str, path: Path, guard: Path) -> None:
    """Record the sum of the file at `path`, had from `url`, unless that has been done.

    `guard` is held meanwhile, so that of several processes none loses another's entry. Raises
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
        write_json(lock, {url: sums[url]._asdict() for url in sorted(sums)})


def forget(lock: Path, url: str, guard: Path) -> None:
    """Take back what was recorded of a file that turned out to be damaged."""
    with FileLock(guard):
        sums = read_lock(lock)
        if sums.pop(url, None) is not None:
            write_json(lock, {url: sums[url]._asdict() for url in sorted(sums)})


def how_to_accept(lock: Path, url: str) -> str:
    """What to do about a file that is meant to have changed."""
    return (
        f"to accept the new file, remove the entry {url} from {lock} and what is in work/downloads"
    )


def _sum(entry: Any, url: str, lock: Path) -> Sum:
    match entry:
        case {"sha256": str(sha256), "size": int(size), **rest} if not rest:
            if re.fullmatch("[0-9a-f]{64}", sha256) and type(size) is int and size >= 0:
                return Sum(sha256, size)
    raise UserError(
        f"{lock}: {url}: needs sha256, 64 hexadecimal digits, and size, a number of bytes; "
        f"found {json.dumps(entry)}"
    )
