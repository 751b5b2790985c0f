"""What the folder work/ holds, listed and removed by `bleuprint work`.

All of it can be removed when nothing runs: trainings then start again from their first update,
downloads are fetched again, and the rest is made when it is needed.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bleuprint.pipeline.leftovers import below, is_locked, size_of, training_lock
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object

_CACHE = Path(".dvc/cache")


@dataclass(frozen=True)
class Entry:
    """A file or folder: its size in bytes, the seconds since it changed, what it is for."""

    path: Path
    size: int
    age: float
    about: str
    in_use: bool


def entries(root: Path = Path()) -> Iterator[Entry]:
    """An entry for each training and each download, then one for each other folder."""
    cells = _cells(root)
    for path in below(root, "work/trainings/[!.]*"):
        names = cells.get(path.suffix[1:], [])
        about = f"training of {', '.join(names)}" if names else "training that has not ended"
        yield _entry(root, path, about, is_locked(training_lock(root / path)))
    for path in below(root, "work/downloads/*"):
        if path.suffix not in (".lock", ".guard"):
            lock = root / path.with_name(f"{path.name.removesuffix('.partial')}.lock")
            yield _entry(root, path, "download", is_locked(lock))
    for path in below(root, "work/*"):
        if path.name not in ("trainings", "downloads") and (root / path).is_dir():
            # Snakemake may be at work in its own, in those of shards, and in projects of `rules`
            projects = (root, *(root / path).glob("*"))
            locks = (any(project.glob(".snakemake/locks/*")) for project in projects)
            yield _entry(root, path, "", any(locks))


def cache_size(root: Path = Path()) -> int:
    """The size of DVC's cache in bytes; 0 before the first stage has run."""
    return size_of(root / _CACHE) if (root / _CACHE).exists() else 0


def _entry(root: Path, path: Path, about: str, in_use: bool) -> Entry:
    place = root / path
    times = [each.lstat().st_mtime for each in (place, *place.rglob("*"))]
    return Entry(path, size_of(place), max(0.0, time.time() - max(times)), about, in_use)


def _cells(root: Path) -> dict[str, list[str]]:
    """The cells of each finished training, by the start of its fingerprint."""
    found: dict[str, list[str]] = {}
    for path in below(root, "results/*/*/*/training.json"):
        with suppress(UserError):  # a damaged result keeps no one from making room
            mark = str(read_object(root / path, ("fingerprint",))["fingerprint"])[:16]
            found.setdefault(mark, []).append("-".join(path.parts[1:4]))
    return found
