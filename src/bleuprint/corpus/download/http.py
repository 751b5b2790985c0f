"""Download of one URL to a file over HTTP: retries with pauses, and resumes a partial file.

A partial file is kept and resumed only if its SHA-256 is known, since the parts may come from
different versions of the file; otherwise it is downloaded again from the start. Proxies,
certificates and ~/.netrc are handled by requests.
"""

import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import requests
from urllib3.exceptions import HTTPError

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
# An attempt ends if within PERIOD seconds no headers came, or of the body fewer than SLOWEST bytes.
PERIOD = 60.0
SLOWEST = 1 << 16
_BLOCK = 1 << 14
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
# No encoding: a .gz file must come as it was hashed.
_HEADERS = {"User-Agent": "bleuprint", "Accept-Encoding": "identity"}
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Unreachable(UserError):
    """A host did not return the file."""


def transfer(url: str, partial: Path, file: File) -> str:
    """Download `url` to `partial`; the address that it came from, after redirects.

    `file` has its expected size and SHA-256, if known. Raises UserError.
    """
    failed, most = 0, _size(partial)
    try:
        while True:
            try:
                return _attempt(url, partial, file)
            except (requests.RequestException, HTTPError) as error:
                size = _size(partial)
                failed = 1 if size >= most + MIN_PROGRESS else failed + 1
                most = max(most, size)
                retry_after = _retry_after(error)
                pause = max(retry_after or 0.0, FIRST_PAUSE * 2 ** (failed - 1))
                cause = " ".join(str(error).split())
                if retry_after is None or failed == ATTEMPTS or pause > LONGEST_PAUSE:
                    raise Unreachable(f"{url}: cannot be fetched: {cause}") from None
                print(f"{url}: {cause}; trying again", file=sys.stderr, flush=True)
                time.sleep(pause)
    except BaseException:
        if file.sha256 is None:
            partial.unlink(missing_ok=True)  # it is of no use, and the disk may be full
        raise


def has_size(url: str, size: int) -> bool:
    """Whether the host says that the file has a size; True if it does not answer."""
    try:
        with _get(url, {}) as response:
            return not response.ok or response.headers.get("Content-Length") == str(size)
    except requests.RequestException:
        return True


def _retry_after(error: Exception) -> float | None:
    """Seconds to wait at least before the next attempt; None if the error is not transient."""
    response = getattr(error, "response", None)
    if response is not None:
        seconds = response.headers.get("Retry-After", "").strip()
        known = float(seconds) if seconds.isdecimal() else 0.0
        return known if response.status_code in _TRANSIENT else None
    lost = isinstance(error, requests.ConnectionError | requests.Timeout | HTTPError)
    return 0.0 if lost else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, partial: Path, file: File) -> str:
    """One request for the file, or for what is missing of it."""
    begin = _size(partial) if file.sha256 is not None else 0
    with _get(url, {"Range": f"bytes={begin}-"} if begin else {}) as response:
        length = response.headers.get("Content-Length", "")
        if begin and response.status_code == 416:  # the partial file is complete, or longer
            return response.url
        if begin and response.status_code == 206:
            span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if span is None or int(span[1]) != begin:
                partial.unlink()
                raise requests.ConnectionError("the server sent another byte range than requested")
            length = span[2]
        elif response.status_code == 200:
            begin = 0
        else:
            raise _refusal(response)
        _check_encoding(url, response)
        total = int(length) if length.isdecimal() else None
        if None not in (total, file.size) and total != file.size:
            raise UserError(f"{url}: expected {file.size} bytes, found {total}")
        with (
            Progress(url.rpartition("/")[2] or url, total, "B", start=begin) as progress,
            partial.open("ab" if begin else "wb") as out,
            _Watch(response) as watch,
        ):
            for block in response.raw.stream(_BLOCK, decode_content=False):
                begin += len(block)
                if file.size is not None and begin > file.size:
                    partial.unlink()
                    raise UserError(f"{url}: expected {file.size} bytes, and the server sends more")
                out.write(block)
                progress.advance(len(block))
                watch.received += len(block)
    if total is not None and (size := _size(partial)) != total:
        raise requests.ConnectionError(f"received {size} of {total} bytes")
    return response.url


def _get(url: str, headers: dict[str, str]) -> requests.Response:
    """The answer to a request, whose body is to be read; raises requests' exceptions.

    The time-out of sockets is for each byte: in a thread, the headers come within PERIOD or not.
    """
    answers: list[requests.Response | Exception] = []

    def ask() -> None:
        try:
            answers.append(
                requests.get(url, headers=_HEADERS | headers, stream=True, timeout=TIMEOUT)
            )
        except Exception as error:  # raised by the caller
            # ValueError: of an address that the request was redirected to
            wrong = isinstance(error, ValueError) and not isinstance(
                error, requests.RequestException
            )
            answers.append(requests.exceptions.InvalidURL(str(error)) if wrong else error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PERIOD)
    if not answers:
        raise requests.Timeout(f"no answer in {PERIOD:g} seconds")
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]


class _Watch:
    """Breaks a response off that is too slow; a context manager around reading its body."""

    def __init__(self, response: requests.Response) -> None:
        self._response, self._over = response, threading.Event()
        self.received, self._is_slow = 0, False
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._is_slow:
            raise requests.ConnectionError(f"fewer than {SLOWEST} bytes in {PERIOD:g} seconds")

    def _watch(self) -> None:
        before = 0
        while not self._over.wait(PERIOD):
            if self.received - before < SLOWEST:
                with suppress(RuntimeError):  # it has just been read to its end
                    self._response.raw.shutdown()
                    self._is_slow = True
                return
            before = self.received


def _check_encoding(url: str, response: requests.Response) -> None:
    """Raise UserError if the server packed the file for the transfer, which was not asked for.

    Some name the packing of a file that is published packed.
    """
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    own = encoding.removeprefix("x-") == "gzip" and re.search(r"\.t?gz(\?|$)", url.lower())
    plain = {"", "identity", "none", "utf-8"}.issuperset(re.split(r"\s*,\s*", encoding))
    if not plain and not own:
        raise UserError(
            f"{url}: the server sent Content-Encoding: {encoding}, which was not asked for: the "
            "file would not be the published one"
        )


def _refusal(response: requests.Response) -> requests.HTTPError:
    cause = f"HTTP {response.status_code} {response.reason}"
    if response.status_code == 401:
        cause += f" (user name and password: {environment.netrc()})"
    if after := response.headers.get("Retry-After"):
        cause += f", Retry-After: {after}"
    return requests.HTTPError(cause, response=response)
