"""Getting one file of a corpus: from a host, a mirror or this machine.

What comes over the network is kept in a store, a folder outside the pipeline's outputs where
each file is named by the hash of its URL: an interrupted run fetches nothing twice. A file in it
is used again if its sum is right; delete it to fetch it anew. Where the manifest gives no sum,
downloads.lock does, from the second time on.
"""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import url2pathname

from filelock import FileLock

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download.http import Unreachable, discard, transfer
from bleuprint.corpus.download.lockfile import forget, how_to_accept, read_lock, record
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of


@dataclass(frozen=True)
class Source:
    """Where files come from besides their own hosts, where they are kept, and downloads.lock.

    Without a `lock`, what has no sum is taken as it comes.
    """

    mirror: str | None
    store: Path
    lock: Path | None


def source_of_environment() -> Source:
    """The mirror that the environment names, the project's store and its downloads.lock."""
    root = environment.root()
    return Source(environment.mirror(), environment.work() / "downloads", root / "downloads.lock")


class _Differs(UserError):
    """A file is to be had, but has another size or sum than it should."""


def fetch(file: File, source: Source) -> Path:
    """The file as published, its size and SHA-256 checked; raises UserError if it is not to be had.

    It is to be read where it lies, not moved or changed. What has no sum is recorded in the
    lock, and must be as that says ever after.
    """
    if file.path is not None:
        return _local(Path(file.path), file.path, file)
    assert file.url is not None
    places = [_place(url, source) for url in (file.url, *file.also_at)]
    if file.sha256 is not None or source.lock is None:
        return _first(places, file, source)
    known = read_lock(source.lock).get(file.url)
    if known is not None:
        return _first(places, replace(file, sha256=known.sha256), source, source.lock)
    found = _first(places, file, source)
    source.store.mkdir(parents=True, exist_ok=True)
    record(source.lock, file.url, found, source.store / "downloads.guard")
    return found


def reject(found: Path, file: File, source: Source) -> None:
    """Forget a file that turned out to be damaged, so that another run fetches it anew."""
    if found.is_relative_to(source.store):
        found.unlink(missing_ok=True)
        if file.sha256 is None and file.url is not None and source.lock is not None:
            forget(source.lock, file.url, source.store / "downloads.guard")


def check(path: Path, name: str, file: File) -> None:
    """Raise UserError if the file at `path`, `name` to the user, has not its size and sum."""
    if wrong := _mismatch(path, file):
        raise _Differs(f"{name}: {wrong}")


@dataclass(frozen=True)
class _Place:
    """Where a URL leads: to a file on this machine, or over the network."""

    url: str
    path: Path | None = None
    in_mirror: bool = False


def _place(url: str, source: Source) -> _Place:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _Place(url, Path(url2pathname(parts.path)))
    if source.mirror is None:
        return _Place(url)
    below = _below_mirror(parts)
    if urlsplit(source.mirror).scheme in ("http", "https"):
        return _Place(f"{source.mirror.rstrip('/')}/{below}")
    folder = Path(source.mirror.removeprefix("file://"))
    return _Place(url, folder / unquote(below), in_mirror=True)


def _below_mirror(parts: SplitResult) -> str:
    """The place of a URL in a mirror: <host>/<path>."""
    path = parts.path.lstrip("/")
    if ".." in unquote(path).split("/"):
        raise UserError(f"{parts.geturl()}: '..' in the path of a URL")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.hostname}/{path}{query}"


def _first(places: list[_Place], file: File, source: Source, lock: Path | None = None) -> Path:
    """The file from the first place that has it; `lock` is where its sum comes from, if there."""
    failures: list[UserError] = []
    for place in places:
        if failures:
            print(f"{failures[-1]}; trying {place.url}", file=sys.stderr, flush=True)
        try:
            if place.path is None:
                return _remote(place.url, file, source.store)
            return _copy_of(place, file)
        except UserError as error:
            failures.append(error)
    raise UserError("; ".join([*map(str, failures), *_advice(failures, file, source, lock)]))


def _advice(
    failures: list[UserError], file: File, source: Source, lock: Path | None
) -> Iterator[str]:
    kinds = {type(error) for error in failures}
    if _Differs in kinds and lock is not None and file.url is not None:
        yield how_to_accept(lock, file.url)
    if Unreachable in kinds and source.mirror is None:
        yield "BLEUPRINT_MIRROR may name a folder or URL with copies"


def _copy_of(place: _Place, file: File) -> Path:
    assert place.path is not None
    if not place.in_mirror:
        return _local(place.path, place.url, file)
    if not place.path.is_file():
        raise UserError(f"{place.url}: the mirror has no {place.path} (BLEUPRINT_MIRROR)")
    return _local(place.path, str(place.path), file)


def _local(path: Path, name: str, file: File) -> Path:
    if not path.is_file():
        raise UserError(f"{name}: no such file")
    check(path, name, file)
    return path


def _mismatch(path: Path, file: File) -> str | None:
    """What is wrong with a file, going by the size and sum it should have."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"expected {file.size} bytes, found {size}"
    if file.sha256 is not None and (found := sha256_of(path)) != file.sha256:
        return f"expected SHA-256 {file.sha256}, found {found}"
    return None


def _remote(url: str, file: File, store: Path) -> Path:
    """Fetch `url` into the store, unless it is there. Others may be after the same file."""
    assert file.url is not None
    store.mkdir(parents=True, exist_ok=True)
    kept = store / hashlib.sha256(file.url.encode()).hexdigest()
    with FileLock(f"{kept}.lock"):
        if kept.exists() and _mismatch(kept, file) is None:
            return kept
        kept.unlink(missing_ok=True)
        partial = kept.with_name(f"{kept.name}.partial")
        pieced = transfer(url, partial, file)
        wrong = _mismatch(partial, file)
        if wrong and pieced:  # the pieces may be of two versions
            discard(partial)
            print(f"{url}: {wrong}; fetching it once more, whole", file=sys.stderr, flush=True)
            transfer(url, partial, file)
            wrong = _mismatch(partial, file)
        if wrong:
            discard(partial)
            raise _Differs(f"{url}: {wrong}; the download was removed")
        partial.replace(kept)
        discard(partial)
    return kept
