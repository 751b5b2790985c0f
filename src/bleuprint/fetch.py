"""Getting one file of a corpus: from a host, a mirror or this machine.

What comes over the network is kept in a store, a folder outside the pipeline's outputs where
each file is named by the hash of its URL: an interrupted run fetches nothing twice. A file in it
is used again if its sum is right or, where none is given, as it is; delete it to fetch it anew.
"""

import hashlib
import http.client
import ssl
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import Request, url2pathname, urlopen

from filelock import FileLock

from bleuprint.errors import UserError
from bleuprint.files import sha256_of
from bleuprint.progress import Progress
from bleuprint.settings import File

TRIES = 3
FIRST_PAUSE = 1.0
TIMEOUT = 30.0
_BLOCK = 1 << 18
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Source:
    """Where files come from besides their own hosts."""

    mirror: str | None
    store: Path


def fetch(file: File, source: Source) -> Path:
    """The file as published, its size and SHA-256 checked; raises UserError if it is not to be had.

    It is to be read where it lies, not moved or changed.
    """
    if file.path is not None:
        return _local(Path(file.path), file.path, file)
    assert file.url is not None
    parts = urlsplit(file.url)
    if parts.scheme == "file":
        return _local(Path(url2pathname(parts.path)), file.url, file)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{file.url}: not an address of http, https, file or phrasebook")
    if source.mirror is None:
        return _remote(file.url, file, source.store)
    place = _in_mirror(parts)
    if urlsplit(source.mirror).scheme in ("http", "https"):
        return _remote(f"{source.mirror.rstrip('/')}/{place}", file, source.store)
    copy = Path(source.mirror.removeprefix("file://")) / unquote(place)
    if not copy.is_file():
        raise UserError(f"{file.url}: the mirror has no {copy} (BLEUPRINT_MIRROR)")
    return _local(copy, str(copy), file)


def _in_mirror(parts: SplitResult) -> str:
    """The place of a URL in a mirror: <host>/<path>."""
    path = parts.path.lstrip("/")
    if ".." in unquote(path).split("/"):
        raise UserError(f"{parts.geturl()}: '..' in the path of a URL")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.hostname}/{path}{query}"


def check(path: Path, name: str, file: File) -> None:
    """Raise UserError if the file at `path`, `name` to the user, has not its size and sum."""
    if wrong := _mismatch(path, file):
        raise UserError(f"{name}: {wrong}")


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
        partial = kept.with_name(f"{kept.name}.partial")
        _download(url, partial)
        if wrong := _mismatch(partial, file):
            partial.unlink()
            raise UserError(f"{url}: {wrong}; the download was removed")
        partial.replace(kept)
    return kept


def _download(url: str, partial: Path) -> None:
    """Write what `url` holds to `partial`, trying again where that may help."""
    for attempt in range(1, TRIES + 1):
        try:
            with urlopen(
                Request(url, headers={"User-Agent": "bleuprint"}), timeout=TIMEOUT
            ) as body:
                _copy(body, partial, url)
            return
        except HTTPError as error:
            cause, hopeless = f"HTTP {error.code} {error.reason}", error.code not in _TRY_AGAIN
        except URLError as error:
            cause, hopeless = str(error.reason), False
        except (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as error:
            cause, hopeless = str(error) or type(error).__name__, False
        if hopeless or attempt == TRIES:
            break
        print(f"{url}: {cause}; trying again", file=sys.stderr, flush=True)
        time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
    raise UserError(
        f"{url}: cannot be fetched: {cause}; BLEUPRINT_MIRROR may name a folder or URL with copies"
    )


def _copy(body: http.client.HTTPResponse, partial: Path, url: str) -> None:
    """Stream a response to disk; raises IncompleteRead if it ends early."""
    length = body.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    progress = Progress(url.rpartition("/")[2] or url, total, "B")
    received = 0
    try:
        with partial.open("wb") as file:
            while block := body.read(_BLOCK):
                file.write(block)
                received += len(block)
                progress.advance(len(block))
    finally:
        progress.close()
    if total is not None and received != total:
        raise ConnectionError(f"{received} of {total} bytes came")
