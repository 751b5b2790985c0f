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
from bleuprint.config.named_texts import address_advice
from bleuprint.runtime import environment
from bleuprint.runtime.errors import Unreachable, UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.regular_files import (
    describe_non_file,
    md5_of,
    open_regular_file,
    sha256_of,
)
from bleuprint.runtime.schema import Sha256, read_record
from bleuprint.runtime.unicode_paths import path_on_disk

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
        """Record the SHA-256 of newly downloaded files in downloads.lock.

        downloads.lock protects files for which the settings give no SHA-256: a later download must
        have the same bytes. Call this when all sentences of the files have been read, which shows
        that the files are not damaged.
        """
        if not self.unrecorded or self.lock is None:
            return
        self.store.mkdir(parents=True, exist_ok=True)
        # The lock keeps another process from writing downloads.lock in between.
        with FileLock(self.store / "downloads.guard"):
            entries: dict[str, RecordedFile] = {}
            for url, path in self.unrecorded.items():
                entries[url] = {"sha256": sha256_of(path), "size": path.stat().st_size}
            # Entries that exist already, perhaps written by another process, are kept.
            entries.update(self.recorded())
            write_json(self.lock, dict(sorted(entries.items())))
        self.unrecorded.clear()

    def recorded(self) -> dict[str, RecordedFile]:
        """Read downloads.lock: the SHA-256 and the size of each file that was downloaded before.

        Returns:
            The entries by URL; none if the file does not exist.

        Raises:
            UserError: downloads.lock is damaged.
        """
        if self.lock is None or not self.lock.exists():
            return {}
        remedy = "Restore it (git checkout), or remove it to accept the files as they are now"
        return read_record(dict[str, RecordedFile], self.lock, remedy)

    def unchecked_hint(self, files: Iterable[File]) -> str:
        """Return an addition to the error message about a text that cannot be read.

        If a file of the text was downloaded for the first time, without a SHA-256, it may have been
        damaged on its way. The addition then says how to download it again.

        Args:
            files: The files of the text.

        Returns:
            The end of the message; empty if all files were checked, or none was downloaded.
        """
        unchecked_paths = set()
        for file in files:
            if file.md5 is not None:
                continue  # The MD5 has shown that the file is not damaged.
            path = self.unrecorded.get(file.url or "")
            # A path outside of the store is a file on this machine, not a download.
            if path is not None and path.is_relative_to(self.store):
                unchecked_paths.add(str(path))
        if not unchecked_paths:
            return ""
        names = " and ".join(sorted(unchecked_paths))
        return (
            ". The download was not checked, because params.yaml gives no sha256. To download "
            f"again, remove {names}"
        )


def downloads_of_environment() -> Downloads:
    """Return where this project downloads from and to; environment variables may change both.

    BLEUPRINT_MIRROR names a folder or URL with copies of files, for machines without internet.
    """
    return Downloads(
        mirror=environment.mirror(),
        store=environment.work_folder() / "downloads",
        lock=environment.project_root() / "downloads.lock",
    )


class _Mismatch(UserError):
    """A file has another size or SHA-256 than expected."""


def fetch(file: File, downloads: Downloads) -> Path:
    """Download a file of a corpus, unless it is on this machine already, and check its SHA-256.

    The SHA-256 is in the settings, or was recorded in downloads.lock at an earlier download. For a
    first download, without either, it is not known yet: the file is then added to
    `downloads.unrecorded`, so that its SHA-256 is recorded later.

    Args:
        file: The settings of the file: its URL, or its path for a user's own file.
        downloads: Where files are downloaded from, and where they are kept.

    Returns:
        The path of the file. The caller must not move or change it.

    Raises:
        UserError: No host or folder has the file, or its size or SHA-256 is wrong.
    """
    if file.path is not None:
        path = path_on_disk(Path(file.path))
        _check_local_file(path, file)
        return path
    assert file.url is not None
    if file.sha256 is not None or downloads.lock is None:
        return _fetch_from_first_host(file, downloads)
    recorded = downloads.recorded().get(file.url)
    if recorded is None:
        if file.url not in downloads.unrecorded:
            downloads.unrecorded[file.url] = _fetch_from_first_host(file, downloads)
        return downloads.unrecorded[file.url]
    file_as_recorded = replace(file, sha256=recorded["sha256"])
    try:
        return _fetch_from_first_host(file_as_recorded, downloads)
    except _Mismatch as error:
        raise UserError(
            f"{error}. To accept the new file, remove the entry {file.url} from {downloads.lock} "
            "and all files in work/downloads"
        ) from None


def _fetch_from_first_host(file: File, downloads: Downloads) -> Path:
    """Download a file from the first of its hosts that has it, unless it was downloaded before.

    Each failure is printed before the next host is tried.

    Args:
        file: The settings of the file: its URL, and its URLs at other hosts.
        downloads: Where files are downloaded from, and where they are kept.

    Raises:
        UserError: No host has the file; the message lists all failures.
    """
    urls = [file.url, *file.mirrors]
    failures: list[UserError] = []
    for url in urls:
        if url is None:
            continue
        location = _location(url, downloads.mirror)
        if failures:
            print(f"{failures[-1]}. Trying {location}", file=sys.stderr, flush=True)
        try:
            if isinstance(location, Path):
                _check_local_file(location, file)
                return location
            return _download(location, file, downloads.store)
        except UserError as error:
            failures.append(error)
    raise _join_failures(failures, downloads.mirror, address_advice(file.url or ""))


def _join_failures(failures: list[UserError], mirror: str | None, advice: str) -> UserError:
    """Join the errors of all hosts of a file into one error.

    If a host has the file with other bytes than expected, the result is a `_Mismatch`, by which the
    caller recognizes that the user could accept the new file.

    Args:
        failures: The error of each host.
        mirror: The value of BLEUPRINT_MIRROR, a folder or URL with copies; None if it is not set.
        advice: What to do if the file does not exist; empty for most files.
    """
    message = "; ".join(str(failure) for failure in failures)
    failure_types = {type(failure) for failure in failures}
    if _Mismatch not in failure_types:
        message += advice
    if mirror is not None:
        message += f". BLEUPRINT_MIRROR is {mirror}"
    elif Unreachable in failure_types:
        message += ". If a folder or URL has copies, name it in BLEUPRINT_MIRROR"
    if _Mismatch in failure_types:
        return _Mismatch(message)
    return UserError(message)


def _location(url: str, mirror: str | None) -> str | Path:
    """Return from where a URL is really read: its host, a mirror, or a file on this machine.

    In the mirror /copies, for example, https://host/path?query is the file /copies/host/path?query.

    Args:
        url: The published URL of the file.
        mirror: A folder or URL with copies of files, by host. None to use the host itself.

    Returns:
        A URL, or the path of a file on this machine.

    Raises:
        UserError: The path of the URL contains `..` and would leave the mirror.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    if mirror is None:
        return url
    if ".." in unquote(parts.path).split("/"):
        raise UserError(f"{url}: the path of a URL must not contain '..'")
    query = f"?{parts.query}" if parts.query else ""
    path_in_mirror = f"{parts.hostname}/{parts.path.lstrip('/')}{query}"
    if urlsplit(mirror).scheme in ("http", "https"):
        return f"{mirror.rstrip('/')}/{path_in_mirror}"
    return Path(mirror.removeprefix("file://")) / unquote(path_in_mirror)


def _check_local_file(path: Path, file: File) -> None:
    """Check the size and the checksums of a file that is already on this machine.

    Args:
        path: Where the file is.
        file: The settings of the file, with the expected values.

    Raises:
        UserError: The file does not exist, or has other bytes than expected.
    """
    if not path.is_file():
        hint = ""
        is_own_file = file.path is not None
        if is_own_file and not path.exists() and environment.is_experiment_copy():
            # `dvc exp run --temp` runs in a copy of the project, without files that Git ignores.
            hint = (
                ". This temporary run contains only files that Git or DVC tracks. To track it: "
                f"dvc add {path}"
            )
        raise UserError(f"{path}: {describe_non_file(path)}{hint}")
    difference = _difference(path, file)
    if difference is not None:
        raise _Mismatch(f"{path}: {difference}")


def _difference(path: Path, file: File) -> str | None:
    """Compare a file with its expected size and checksums, as far as the settings give them.

    Returns:
        The end of an error message that says how the file differs; None if it does not.
    """
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"expected {file.size} bytes, found {size}"
    if file.md5 is not None:
        md5 = md5_of(path)
        if md5 != file.md5:
            return f"expected MD5 {file.md5}, found {md5}"
    if file.sha256 is None:
        return None
    sha256 = sha256_of(path)
    if sha256 != file.sha256:
        return f"expected SHA-256 {file.sha256}, found {sha256}"
    return None


def _download(url: str, file: File, store: Path) -> Path:
    """Download a file into the folder of downloaded files, unless it is there already.

    Only one process downloads a file; other processes that need it wait for a lock. The name of the
    file in the folder is the hash of its published URL, whatever host it comes from.

    Args:
        url: Where to download from: the published URL, or a URL at another host or a mirror.
        file: The settings of the file, with its expected size and SHA-256 if they are known.
        store: The folder of downloaded files.

    Returns:
        The path of the downloaded file.

    Raises:
        UserError: The download failed, or brought other bytes than expected.
    """
    # Imported here: requests takes a tenth of a second, and many files are on this machine.
    from bleuprint.corpus.download.http import transfer

    assert file.url is not None
    store.mkdir(parents=True, exist_ok=True)
    stored = store / hashlib.sha256(file.url.encode()).hexdigest()
    with FileLock(f"{stored}.lock"):
        if stored.exists() and _difference(stored, file) is None:
            return stored
        # The stored file has other bytes than the settings expect: download it again.
        stored.unlink(missing_ok=True)
        partial = stored.with_name(f"{stored.name}.partial")
        transfer(url, partial, file)
        difference = _difference(partial, file)
        if difference is not None:
            partial.unlink()
            raise _Mismatch(f"{url}: {difference}. The download was removed")
        # Without a SHA-256, nothing else would show that this is a login or error page.
        if file.sha256 is None and _is_web_page(partial):
            partial.unlink()
            raise Unreachable(f"{url}: the host sent a web page in place of the file")
        return partial.replace(stored)


def _is_web_page(path: Path) -> bool:
    """Return whether a host sent a web page, or an error message in XML, in place of a file."""
    with open_regular_file(path) as content:
        head = content.read(_PAGE_HEAD_BYTES)
    return _WEB_PAGE.match(head) is not None
