"""Fetches one file of a corpus: from its host, another host, a mirror or this machine.

Downloads are kept in the store, a folder outside of the pipeline's outputs, under the hash of their
URL, and are used again if their SHA-256 is right. If params.yaml gives no SHA-256 for a file, it is
recorded in downloads.lock once all texts of the corpus have been read for the first time. That file
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

# How a page begins that a host sends in place of a file: a login page of the network, a page about
# a file that has moved, or an error of a storage service in XML.
_WEB_PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype html|html|error)\b",
    re.IGNORECASE,
)
# So many bytes are enough to recognize a web page.
_PAGE_HEAD_BYTES = 4096


class RecordedFile(TypedDict):
    """What downloads.lock records of a file."""

    sha256: Sha256
    size: int


@dataclass(frozen=True)
class Downloads:
    """Where files are downloaded from, and where they are kept.

    Attributes:
        mirror: A folder or URL with copies of files, which is asked in place of their hosts.
        store: The folder for downloaded files.
        lock: The file downloads.lock. Without it, files without a SHA-256 are not checked.
        unrecorded: Files without a SHA-256 that are to be recorded in downloads.lock, by URL.
    """

    mirror: str | None
    store: Path
    lock: Path | None
    unrecorded: dict[str, Path] = field(default_factory=dict, compare=False)

    def record(self) -> None:
        """Record the SHA-256 of the unrecorded files in downloads.lock.

        It is called once their texts have been read to the end, so that no damaged file is
        recorded.
        """
        if not self.unrecorded or self.lock is None:
            return
        self.store.mkdir(parents=True, exist_ok=True)
        # The lock keeps another process from writing downloads.lock in between.
        with FileLock(self.store / "downloads.guard"):
            entries: dict[str, RecordedFile] = {}
            for url, path in self.unrecorded.items():
                entries[url] = {"sha256": sha256_of(path), "size": path.stat().st_size}
            entries.update(self.recorded())
            write_json(self.lock, dict(sorted(entries.items())))
        self.unrecorded.clear()

    def recorded(self) -> dict[str, RecordedFile]:
        """Return the entries of downloads.lock by URL.

        Raises:
            UserError: downloads.lock is damaged.
        """
        if self.lock is None or not self.lock.exists():
            return {}
        remedy = "restore it (git checkout), or remove it to accept the files as they are now"
        return read_record(dict[str, RecordedFile], self.lock, remedy)

    def unchecked_hint(self, files: Iterable[File]) -> str:
        """Return the end of a message about a malformed text that was downloaded unchecked.

        Without a SHA-256 nobody knows whether a file in the store is what its host offers now, so
        the message says how to download it again. It is empty if all files were checked.
        """
        stored = set()
        for file in files:
            path = self.unrecorded.get(file.url or "")
            if path is not None and path.is_relative_to(self.store):
                stored.add(str(path))
        if not stored:
            return ""
        names = " and ".join(sorted(stored))
        return f"; they were downloaded without a SHA-256; to download again, remove {names}"


def downloads_of_environment() -> Downloads:
    """Return the mirror in the environment, and the store and downloads.lock of the project."""
    return Downloads(
        mirror=environment.mirror(),
        store=environment.work_folder() / "downloads",
        lock=environment.project_root() / "downloads.lock",
    )


class _Mismatch(UserError):
    """A file has another size or SHA-256 than expected."""


def fetch(file: File, downloads: Downloads) -> Path:
    """Return the path of a file on this machine, downloading it if necessary.

    Its size and SHA-256 have been checked. The caller must not move or change the file.

    Raises:
        UserError: No host or folder has the file.
    """
    if file.path is not None:
        return _check_local(path_on_disk(Path(file.path)), file)
    assert file.url is not None
    if file.sha256 is not None or downloads.lock is None:
        return _fetch_from_first_host(file, downloads)
    recorded = downloads.recorded().get(file.url)
    if recorded is None:
        if file.url not in downloads.unrecorded:
            downloads.unrecorded[file.url] = _fetch_from_first_host(file, downloads)
        return downloads.unrecorded[file.url]
    try:
        return _fetch_from_first_host(replace(file, sha256=recorded["sha256"]), downloads)
    except _Mismatch as error:
        raise UserError(
            f"{error}; to accept the new file, remove the entry {file.url} from {downloads.lock} "
            "and what is in work/downloads"
        ) from None


def _fetch_from_first_host(file: File, downloads: Downloads) -> Path:
    """Return the file from the first of its URLs that has it.

    Each failure is printed before the next URL is tried.

    Raises:
        UserError: No URL has the file; the message tells all failures.
    """
    urls = [file.url, *file.mirrors]
    failures: list[UserError] = []
    for url in urls:
        if url is None:
            continue
        location = _location(url, downloads.mirror)
        if failures:
            print(f"{failures[-1]}; trying {location}", file=sys.stderr, flush=True)
        try:
            if isinstance(location, Path):
                return _check_local(location, file)
            return _download(location, file, downloads.store)
        except UserError as error:
            failures.append(error)
    raise _all_failed(failures, downloads.mirror)


def _all_failed(failures: list[UserError], mirror: str | None) -> UserError:
    """Return one error for several failures; a mismatch if one of them is.

    Args:
        failures: The error of each URL.
        mirror: The mirror in the environment.
    """
    messages = [str(failure) for failure in failures]
    failure_types = {type(failure) for failure in failures}
    if mirror is not None:
        messages.append(f"BLEUPRINT_MIRROR is {mirror}")
    elif Unreachable in failure_types:
        messages.append("BLEUPRINT_MIRROR may name a folder or URL with copies")
    message = "; ".join(messages)
    if _Mismatch in failure_types:
        return _Mismatch(message)
    return UserError(message)


def _location(url: str, mirror: str | None) -> str | Path:
    """Return where a URL is fetched from: a URL, or a file on this machine.

    A mirror contains the file of `https://host/path?query` at `host/path?query`.

    Raises:
        UserError: The path of the URL contains `..` and would leave the mirror.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    if mirror is None:
        return url
    if ".." in unquote(parts.path).split("/"):
        raise UserError(f"{url}: '..' in the path of a URL")
    query = f"?{parts.query}" if parts.query else ""
    path_in_mirror = f"{parts.hostname}/{parts.path.lstrip('/')}{query}"
    if urlsplit(mirror).scheme in ("http", "https"):
        return f"{mirror.rstrip('/')}/{path_in_mirror}"
    return Path(mirror.removeprefix("file://")) / unquote(path_in_mirror)


def _check_local(path: Path, file: File) -> Path:
    """Return the path of a file on this machine, after checking its size and SHA-256."""
    if not path.is_file():
        hint = ""
        is_own_file = file.path is not None
        if is_own_file and not path.exists() and environment.is_experiment_copy():
            hint = f" in this temporary run, which has what git or DVC tracks: dvc add {path}"
        raise UserError(f"{path}: {describe_non_file(path)}{hint}")
    difference = _difference(path, file)
    if difference is not None:
        raise _Mismatch(f"{path}: {difference}")
    return path


def _difference(path: Path, file: File) -> str | None:
    """Say how a file differs from its expected size and SHA-256; None if it does not."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"expected {file.size} bytes, found {size}"
    if file.sha256 is None:
        return None
    sha256 = sha256_of(path)
    if sha256 != file.sha256:
        return f"expected SHA-256 {file.sha256}, found {sha256}"
    return None


def _download(url: str, file: File, store: Path) -> Path:
    """Download a URL into the store, unless the file is there already; return its path.

    A lock makes other processes wait that want the same file.

    Args:
        url: Where to download from: the file's own URL, or a mirror's.
        file: The file, stored under the hash of its own URL.
        store: The folder for downloaded files.
    """
    # Imported here: requests takes a tenth of a second, and many files are on this machine.
    from bleuprint.corpus.download.http import transfer

    assert file.url is not None
    store.mkdir(parents=True, exist_ok=True)
    stored = store / hashlib.sha256(file.url.encode()).hexdigest()
    with FileLock(f"{stored}.lock"):
        if stored.exists() and _difference(stored, file) is None:
            return stored
        stored.unlink(missing_ok=True)
        partial = stored.with_name(f"{stored.name}.partial")
        transfer(url, partial, file)
        difference = _difference(partial, file)
        if difference is not None:
            partial.unlink()
            raise _Mismatch(f"{url}: {difference}; the download was removed")
        if file.sha256 is None and _is_web_page(partial):
            partial.unlink()
            raise Unreachable(f"{url}: a web page came in its place")
        return partial.replace(stored)


def _is_web_page(path: Path) -> bool:
    """Return whether a file begins like an HTML page or an error message in XML."""
    with open_regular_file(path) as content:
        head = content.read(_PAGE_HEAD_BYTES)
    return _WEB_PAGE.match(head) is not None
