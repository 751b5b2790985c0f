"""Fetches one file of a corpus: from its host, another host, a mirror or this machine.

Downloads are kept in the store, a folder outside the pipeline's outputs, under the hash of their
URL, and are used again if their SHA-256 is right. A file without a SHA-256 in params.yaml has it
recorded in downloads.lock when all texts of its corpus have been read for the first time. That file
is at the project's root and is committed: a later download of the URL, from any host or mirror,
must have the same bytes.
"""

import hashlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from typing_extensions import TypedDict

from bleuprint.config.corpus_files import File
from bleuprint.runtime import environment
from bleuprint.runtime.errors import Unreachable, UserError
from bleuprint.runtime.files import (
    describe_non_file,
    open_regular_file,
    path_on_disk,
    sha256_of,
    write_json,
)
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.schema import Sha256, read_record
from bleuprint.runtime.wording import join_with_and

# A login page of the network, a page about a file that has moved, or a store's error in XML.
_PAGE = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|error)\b", re.IGNORECASE)


class Recorded(TypedDict):
    """What downloads.lock records of a file."""

    sha256: Sha256
    size: int


@dataclass(frozen=True)
class Downloads:
    """The mirror, the store of downloads, and downloads.lock.

    Without a `lock`, a file without a SHA-256 is not checked. `fetched`: by URL, what is to be
    recorded in it.
    """

    mirror: str | None
    store: Path
    lock: Path | None
    fetched: dict[str, Path] = field(default_factory=dict, compare=False)

    def record(self) -> None:
        """Record the SHA-256 of the files without one, whose texts have been read to the end."""
        if self.fetched and self.lock is not None:
            self.store.mkdir(parents=True, exist_ok=True)
            with FileLock(self.store / "downloads.guard"):
                new: dict[str, Recorded] = {
                    url: {"sha256": sha256_of(path), "size": path.stat().st_size}
                    for url, path in self.fetched.items()
                }
                write_json(self.lock, dict(sorted((new | self.recorded()).items())))
            self.fetched.clear()

    def recorded(self) -> dict[str, Recorded]:
        """SHA-256 and size by URL; raises UserError if downloads.lock is damaged."""
        if self.lock is None or not self.lock.exists():
            return {}
        remedy = "restore it (git checkout), or remove it to accept the files as they are now"
        return read_record(dict[str, Recorded], self.lock, remedy)

    def doubts(self, files: Iterable[File]) -> str:
        """What to say of files whose text is not as it should be; empty if their sums are known."""
        paths = {self.fetched[file.url] for file in files if file.url in self.fetched}
        kept = sorted(str(path) for path in paths if path.is_relative_to(self.store))
        what = "they were downloaded without a SHA-256; to download again, remove"
        return f"; {what} {join_with_and(kept)}" if kept else ""


def downloads_of_environment() -> Downloads:
    """The mirror in the environment, and the project's store and downloads.lock."""
    root = environment.project_root()
    return Downloads(
        environment.mirror(), environment.work_folder() / "downloads", root / "downloads.lock"
    )


class _Mismatch(UserError):
    """A file has another size or SHA-256 than expected."""


def fetch(file: File, downloads: Downloads) -> Path:
    """The path of a file, its size and SHA-256 checked; raises UserError if no place has it.

    The caller must not move or change the file.
    """
    if file.path is not None:
        return _local(path_on_disk(Path(file.path)), file)
    assert file.url is not None
    if file.sha256 is not None or downloads.lock is None:
        return _first(file, downloads)
    if known := downloads.recorded().get(file.url):
        try:
            return _first(replace(file, sha256=known["sha256"]), downloads)
        except _Mismatch as error:
            entry = f"the entry {file.url} from {downloads.lock} and what is in work/downloads"
            raise UserError(f"{error}; to accept the new file, remove {entry}") from None
    if file.url not in downloads.fetched:
        downloads.fetched[file.url] = _first(file, downloads)
    return downloads.fetched[file.url]


def _place(url: str, mirror: str | None) -> str | Path:
    """Where to fetch a URL: a URL, or a file on this machine."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    if mirror is None:
        return url
    if ".." in unquote(parts.path).split("/"):
        raise UserError(f"{url}: '..' in the path of a URL")
    query = f"?{parts.query}" if parts.query else ""
    below = f"{parts.hostname}/{parts.path.lstrip('/')}{query}"
    if urlsplit(mirror).scheme in ("http", "https"):
        return f"{mirror.rstrip('/')}/{below}"
    return Path(mirror.removeprefix("file://")) / unquote(below)


def _first(file: File, downloads: Downloads) -> Path:
    """The file from the first place that has it."""
    failures: list[UserError] = []
    for url in filter(None, (file.url, *file.mirrors)):
        place = _place(url, downloads.mirror)
        if failures:
            print(f"{failures[-1]}; trying {place}", file=sys.stderr, flush=True)
        try:
            if isinstance(place, Path):
                return _local(place, file)
            return _remote(place, file, downloads.store)
        except UserError as error:
            failures.append(error)
    messages, kinds = [str(error) for error in failures], {type(error) for error in failures}
    if downloads.mirror is not None:
        messages.append(f"BLEUPRINT_MIRROR is {downloads.mirror}")
    elif Unreachable in kinds:
        messages.append("BLEUPRINT_MIRROR may name a folder or URL with copies")
    raise (_Mismatch if _Mismatch in kinds else UserError)("; ".join(messages))


def _local(path: Path, file: File) -> Path:
    if not path.is_file():
        hint = ""
        if file.path is not None and not path.exists() and environment.is_experiment_copy():
            hint = f" in this temporary run, which has what git or DVC tracks: dvc add {path}"
        raise UserError(f"{path}: {describe_non_file(path)}{hint}")
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


def _remote(url: str, file: File, store: Path) -> Path:
    """Download `url` to the store, unless it is there; a lock keeps other processes waiting."""
    # imported here: requests takes a tenth of a second, and many files are on this machine
    from bleuprint.corpus.download.http import transfer

    assert file.url is not None
    store.mkdir(parents=True, exist_ok=True)
    kept = store / hashlib.sha256(file.url.encode()).hexdigest()
    with FileLock(f"{kept}.lock"):
        if kept.exists() and _mismatch(kept, file) is None:
            return kept
        kept.unlink(missing_ok=True)
        partial = kept.with_name(f"{kept.name}.partial")
        transfer(url, partial, file)
        if wrong := _mismatch(partial, file):
            partial.unlink()
            raise _Mismatch(f"{url}: {wrong}; the download was removed")
        with open_regular_file(partial) as content:
            is_page = file.sha256 is None and _PAGE.match(content.read(4096))
        if is_page:
            partial.unlink()
            raise Unreachable(f"{url}: a web page came in its place")
        return partial.replace(kept)
