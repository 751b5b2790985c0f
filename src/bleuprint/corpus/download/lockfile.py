"""downloads.lock: the SHA-256 of files that params.yaml gives none for.

It is at the project's root and is committed: a later download of the same URL, from any host or
mirror, must have the same bytes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bleuprint.runtime.files import read_object, sha256_of, write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.schema import build
from bleuprint.runtime.secrets import mask_address


@dataclass(frozen=True)
class Sum:
    """The SHA-256 of a file, in hexadecimal, its size in bytes, and where it was redirected to."""

    sha256: str
    size: int
    redirected_to: str | None = None


def read_lock(lock: Path) -> dict[str, Sum]:
    """The recorded sums by URL; raises UserError if the file is damaged."""
    entries = read_object(lock) if lock.exists() else {}
    return {url: build(Sum, entry, lock) for url, entry in entries.items()}


def record(lock: Path, url: str, path: Path, guard: Path, address: str | None = None) -> None:
    """Record the sum of the file at `path`, downloaded from `url`, unless one is recorded.

    `address`: the one that it came from in the end; its query, often a signature, is left out.
    """
    bare = address and mask_address(urlsplit(address)._replace(query="", fragment="").geturl())
    redirected = bare if bare and bare != url.partition("?")[0] else None
    with _changing(lock, guard) as sums:
        sums.setdefault(url, Sum(sha256_of(path), path.stat().st_size, redirected))


def forget(lock: Path, url: str, guard: Path) -> None:
    """Remove the entry of a file that turned out to be damaged."""
    with _changing(lock, guard) as sums:
        sums.pop(url, None)


@contextmanager
def _changing(lock: Path, guard: Path) -> Iterator[dict[str, Sum]]:
    """The sums, written afterwards; processes that change them at once wait for the `guard`."""
    with FileLock(guard):
        sums = read_lock(lock)
        yield sums
        entries = {url: asdict(sums[url]) for url in sorted(sums)}
        known = {
            url: {key: value for key, value in entry.items() if value is not None}
            for url, entry in entries.items()
        }
        write_json(lock, known)
