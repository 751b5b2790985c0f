"""downloads.lock: the SHA-256 of files that params.yaml gives none for.

It is at the project's root and is committed: a later download of the same URL, from any host or
mirror, must have the same bytes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bleuprint.runtime.files import read_object, sha256_of, write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.schema import build


@dataclass(frozen=True)
class Sum:
    """The SHA-256 of a file, in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


def read_lock(lock: Path) -> dict[str, Sum]:
    """The recorded sums by URL; raises UserError if the file is damaged."""
    entries = read_object(lock) if lock.exists() else {}
    return {url: build(Sum, entry, lock) for url, entry in entries.items()}


def record(lock: Path, files: Mapping[str, Path], guard: Path) -> None:
    """Record the sums of files by the URL that they came from, unless one is recorded.

    Processes that record at once wait for the `guard`.
    """
    with FileLock(guard):
        new = {url: Sum(sha256_of(path), path.stat().st_size) for url, path in files.items()}
        sums = new | read_lock(lock)
        write_json(lock, {url: asdict(sums[url]) for url in sorted(sums)})
