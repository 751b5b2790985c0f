"""Fetches one file of a corpus: from its host, another host, a mirror or this machine.

Downloads are kept in the store, a folder outside the pipeline's outputs, under the hash of their
URL, and are used again if their SHA-256 is right. A file without a SHA-256 in params.yaml has it
recorded in downloads.lock when its text has been read to the end for the first time; before, it is
used again only if the host says that it has the same size.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from bleuprint.config.corpus_files import File
from bleuprint.corpus.download.http import Unreachable, has_size, transfer
from bleuprint.corpus.download.lockfile import forget, read_lock, record
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import not_a_file, sha256_of
from bleuprint.runtime.locks import FileLock


class Fetched(NamedTuple):
    """A file, and the address that it came from in this run, if it was downloaded."""

    path: Path
    address: str | None = None


@dataclass(frozen=True)
class Source:
    """The mirror, the store of downloads, and downloads.lock.

    Without a `lock`, a file without a SHA-256 is not checked. `fetched`: by URL, what is to be
    recorded in it when it has been read.
    """

    mirror: str | None
    store: Path
    lock: Path | None
    fetched: dict[str, Fetched] = field(default_factory=dict, compare=False)


def source_of_environment() -> Source:
    """The mirror in the environment, and the project's store and downloads.lock."""
    root = environment.root()
    return Source(environment.mirror(), environment.work() / "downloads", root / "downloads.lock")


# A login page of the network, a page about a file that has moved, or a store's error in XML.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*"
    rb"<(?:!doctype html|html|error)\b",
    re.IGNORECASE | re.DOTALL,
)


class _Mismatch(UserError):
    """A file has another size or SHA-256 than expected."""


def fetch(file: File, source: Source) -> Path:
    """The path of a file, its size and SHA-256 checked; raises UserError if no place has it.

    The caller must not move or change the file.
    """
    if file.path is not None:
        return _local(Path(file.path), file)
    assert file.url is not None
    places = [_place(url, source) for url in (file.url, *file.mirrors)]
    lock = source.lock if file.sha256 is None else None
    if lock is None:
        return _first(places, file, source).path
    if known := read_lock(lock).get(file.url):
        return _first(places, replace(file, sha256=known.sha256), source, lock).path
    if file.url not in source.fetched:
        source.fetched[file.url] = _first(places, file, source)
    return source.fetched[file.url].path


def accept(file: File, source: Source) -> None:
    """Record the SHA-256 of a file without one, whose text has been read to the end."""
    if file.url in source.fetched and source.lock is not None:
        path, address = source.fetched.pop(file.url)
        source.store.mkdir(parents=True, exist_ok=True)
        record(source.lock, file.url, path, source.store / "downloads.guard", address)


def doubts(files: Iterable[File], source: Source) -> str:
    """What to say of files whose text is not as it should be; empty if their SHA-256 are known."""
    paths = {source.fetched[file.url].path for file in files if file.url in source.fetched}
    kept = sorted(str(path) for path in paths if path.is_relative_to(source.store))
    if not kept:
        return ""
    return (
        f"; downloaded without a SHA-256: {' and '.join(kept)}: fetched again if removed, or if "
        "the size at the host has changed"
    )


def reject(path: Path, file: File, source: Source) -> None:
    """Remove a damaged download from the store and the lock; the next run downloads it again."""
    if path.is_relative_to(source.store):
        path.unlink(missing_ok=True)
        if file.sha256 is None and file.url is not None and source.lock is not None:
            source.fetched.pop(file.url, None)
            forget(source.lock, file.url, source.store / "downloads.guard")


def _place(url: str, source: Source) -> str | Path:
    """Where to fetch a URL: a URL, or a file on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    if source.mirror is None:
        return url
    if ".." in unquote(parts.path).split("/"):
        raise UserError(f"{url}: '..' in the path of a URL")
    query = f"?{parts.query}" if parts.query else ""
    below = f"{parts.hostname}/{parts.path.lstrip('/')}{query}"
    if urlsplit(source.mirror).scheme in ("http", "https"):
        return f"{source.mirror.rstrip('/')}/{below}"
    return Path(source.mirror.removeprefix("file://")) / unquote(below)


def _first(
    places: list[str | Path], file: File, source: Source, lock: Path | None = None
) -> Fetched:
    """The file from the first place that has it; `lock` contains its SHA-256, if given."""
    failures: list[UserError] = []
    for place in places:
        if failures:
            print(f"{failures[-1]}; trying {place}", file=sys.stderr, flush=True)
        try:
            if isinstance(place, Path):
                return Fetched(_local(place, file))
            return _remote(place, file, source.store)
        except UserError as error:
            failures.append(error)
    messages, kinds = [str(error) for error in failures], {type(error) for error in failures}
    if _Mismatch in kinds and lock is not None and file.url is not None:
        what = f"the entry {file.url} from {lock} and what is in work/downloads"
        messages.append(f"to accept the new file, remove {what}")
    if source.mirror is not None:
        messages.append(f"BLEUPRINT_MIRROR is {source.mirror}")
    elif Unreachable in kinds:
        messages.append("BLEUPRINT_MIRROR may name a folder or URL with copies")
    raise UserError("; ".join(messages))


def _local(path: Path, file: File) -> Path:
    if not path.is_file():
        hint = ""
        if file.path is not None and not path.exists() and environment.is_copy():
            hint = f" in this temporary run, which has what git or DVC tracks: dvc add {path}"
        raise UserError(f"{path}: {not_a_file(path)}{hint}")
    if wrong := _mismatch(path, file):
        raise _Mismatch(f"{path}: {wrong}")
    return path


def _mismatch(path: Path, file: File) -> str | None:
    """How a file differs from its expected size and SHA-256; None if it does not."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"expected {file.size} bytes, found {size}"
    if file.sha256 is not None and (found := sha256_of(path)) != file.sha256:
        return f"expected SHA-256 {file.sha256}, found {found}"
    return None


def _remote(url: str, file: File, store: Path) -> Fetched:
    """Download `url` to the store, unless it is there; a lock keeps other processes waiting."""
    assert file.url is not None
    store.mkdir(parents=True, exist_ok=True)
    kept = store / hashlib.sha256(file.url.encode()).hexdigest()
    with FileLock(f"{kept}.lock"):
        is_kept = kept.exists() and _mismatch(kept, file) is None
        if is_kept and (file.sha256 is not None or has_size(url, kept.stat().st_size)):
            return Fetched(kept)
        kept.unlink(missing_ok=True)
        partial = kept.with_name(f"{kept.name}.partial")
        address = transfer(url, partial, file)
        if wrong := _mismatch(partial, file):
            partial.unlink()
            raise _Mismatch(f"{url}: {wrong}; the download was removed")
        if file.sha256 is None and (page := _page(partial, url)) is not None:
            partial.unlink()
            came = f" from {address}" if address != url else ""
            raise Unreachable(f"{url}: a web page came in its place{came}{page}")
        partial.replace(kept)
    return Fetched(kept, address)


def _is_json(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False


def _page(path: Path, url: str) -> str | None:
    """The title of a web page, for a message; None if a file is none, or is meant to be one.

    A short answer in JSON is one, too.
    """
    if urlsplit(url).path.lower().endswith((".html", ".htm", ".xml", ".json")):
        return None
    with path.open("rb") as file:
        start = file.read(4096)
    if not _PAGE.match(start):
        return " (JSON)" if _is_json(start) else None
    title = re.search(rb"<title>([^<]+)", start, re.IGNORECASE)
    return f" ({title[1].decode(errors='replace').strip()!r})" if title else ""
