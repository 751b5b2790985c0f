"""Download of one URL to a file over HTTP: retries with pauses, and resumes a partial file.

A partial file is resumed only if its SHA-256 is known, since the parts may come from different
versions of the file; otherwise it is downloaded again from the start.
"""

import http.client
import netrc
import re
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPBasicAuthHandler, HTTPPasswordMgr, Request, build_opener

from bleuprint.config.corpus_files import File
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress

# An attempt that adds MIN_PROGRESS bytes to the partial file resets the number of attempts.
ATTEMPTS = 5
MIN_PROGRESS = 1 << 20
# Seconds: the pause after the first attempt, doubled after each further one; the longest pause.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
TIMEOUT = 30.0
_BLOCK = 1 << 18
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
_HEADERS = {"User-Agent": "bleuprint", "Accept-Encoding": "identity"}
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Unreachable(UserError):
    """A host did not return the file."""


def transfer(url: str, partial: Path, file: File) -> None:
    """Download `url` to `partial`; `file` has its expected size and SHA-256, if known.

    Raises UserError.
    """
    failed, most = 0, _size(partial)
    while True:
        try:
            _attempt(url, partial, file)
            return
        except _RequestError as error:
            size = _size(partial)
            failed = 1 if size >= most + MIN_PROGRESS else failed + 1
            most = max(most, size)
            pause = max(error.pause, FIRST_PAUSE * 2 ** (failed - 1))
            if not error.transient or failed == ATTEMPTS or pause > LONGEST_PAUSE:
                raise Unreachable(f"{url}: cannot be fetched: {error}") from None
            print(f"{url}: {error}; trying again", file=sys.stderr, flush=True)
            time.sleep(pause)


class _RequestError(Exception):
    """A request failed; if `transient`, it may succeed after `pause` seconds."""

    def __init__(self, cause: str, transient: bool = True, pause: float = 0.0) -> None:
        super().__init__(" ".join(cause.split()))
        self.transient, self.pause = transient, pause


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, partial: Path, file: File) -> None:
    """One request for the file, or for what is missing of it."""
    begin = _size(partial) if file.sha256 is not None else 0
    with _get(url, begin) as response:
        length = response.headers.get("Content-Length", "")
        if begin and response.status == 416:  # the partial file is complete, or longer
            return
        if begin and response.status == 206:
            span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if span is None or int(span[1]) != begin:
                partial.unlink()
                raise _RequestError("another part than requested came")
            length = span[2]
        elif response.status != 200:
            raise _RequestError(f"status {response.status} instead of 200", transient=False)
        else:
            begin = 0
        total = int(length) if length.isdecimal() else None
        if None not in (total, file.size) and total != file.size:
            raise UserError(f"{url}: expected {file.size} bytes, found {total}")
        _copy(response, partial, url, begin, total)


def _copy(response: Any, partial: Path, url: str, begin: int, total: int | None) -> None:
    """Write the body of a response to the partial file, from byte `begin`."""
    done = begin
    with (
        Progress(url.rpartition("/")[2] or url, total, "B", start=begin) as progress,
        partial.open("ab" if begin else "wb") as out,
    ):
        while done != total:
            with _request_errors():
                block = response.read1(_BLOCK if total is None else min(_BLOCK, total - done))
            if not block:
                break
            out.write(block)
            done += len(block)
            progress.advance(len(block))
    if total is not None and done != total:
        raise _RequestError(f"{done} of {total} bytes came")


def _get(url: str, begin: int) -> Any:
    """The response to a GET from byte `begin`: its status is 2xx, or 416 for a range."""
    # spaces and letters that are not ASCII occur in publishers' URLs
    quoted = quote(url, safe="!#$%&'()*+,/:;=?@[]~")
    span = {"Range": f"bytes={begin}-"} if begin else {}
    with _request_errors():
        try:
            # only to the host that requests it: a redirect must not pass a password on to another
            opener = build_opener(HTTPBasicAuthHandler(_Netrc()))
            return opener.open(Request(quoted, headers=_HEADERS | span), timeout=TIMEOUT)
        except HTTPError as error:
            if error.code == 416 and begin:
                return error
            error.close()
            raise


class _Netrc(HTTPPasswordMgr):
    """The user names and passwords of ~/.netrc."""

    def find_user_password(self, realm: str, authuri: str) -> Any:  # noqa: ARG002
        path = environment.netrc()
        try:
            known = netrc.netrc(path).authenticators(urlsplit(authuri).hostname or "")
        except FileNotFoundError:
            known = None
        except netrc.NetrcParseError as error:  # whose text may be a password
            raise UserError(f"{path}:{error.lineno}: not as a .netrc file must be") from None
        return (known[0] or known[1], known[2]) if known else (None, None)


@contextmanager
def _request_errors() -> Iterator[None]:
    """Raise errors of the connection and of the host as _RequestError."""
    try:
        yield
    except HTTPError as error:
        transient = error.code in _TRANSIENT
        cause = f"HTTP {error.code} {error.reason}"
        if error.code == 401:
            cause += f" (user name and password: {environment.netrc()})"
        seconds = error.headers.get("Retry-After", "").strip()
        pause = float(seconds) if seconds.isdecimal() else 0.0
        if transient and pause > LONGEST_PAUSE:
            cause += f", Retry-After: {pause:.0f} s"
        raise _RequestError(cause, transient, pause) from None
    except http.client.InvalidURL as error:
        redirect = "@" in str(error)  # in params.yaml it is refused
        cause = "redirected to a URL with a user name or password" if redirect else str(error)
        raise _RequestError(cause, transient=False) from None
    except (OSError, http.client.HTTPException) as error:
        root = error.reason if isinstance(error, URLError) else error
        transient = not isinstance(root, ssl.SSLCertVerificationError)
        raise _RequestError(str(root) or type(root).__name__, transient) from None
