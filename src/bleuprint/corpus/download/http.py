"""Download of one URL to a file over HTTP: retries with pauses, and resumes a partial file.

A partial file is resumed only if its SHA-256 is known, since the parts may come from different
versions of the file; otherwise it is downloaded again from the start. Proxies, certificates and
~/.netrc are handled by requests.
"""

import re
import sys
import time
from pathlib import Path

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
_BLOCK = 1 << 16
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
# No encoding: a .gz file must come as it was hashed.
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


def _attempt(url: str, partial: Path, file: File) -> None:
    """One request for the file, or for what is missing of it."""
    begin = _size(partial) if file.sha256 is not None else 0
    headers = _HEADERS | ({"Range": f"bytes={begin}-"} if begin else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length", "")
        if begin and response.status_code == 416:  # the partial file is complete, or longer
            return
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
        total = int(length) if length.isdecimal() else None
        if None not in (total, file.size) and total != file.size:
            raise UserError(f"{url}: expected {file.size} bytes, found {total}")
        with (
            Progress(url.rpartition("/")[2] or url, total, "B", start=begin) as progress,
            partial.open("ab" if begin else "wb") as out,
        ):
            for block in response.raw.stream(_BLOCK, decode_content=False):
                out.write(block)
                progress.advance(len(block))
    if total is not None and (size := _size(partial)) != total:
        raise requests.ConnectionError(f"received {size} of {total} bytes")


def _refusal(response: requests.Response) -> requests.HTTPError:
    cause = f"HTTP {response.status_code} {response.reason}"
    if response.status_code == 401:
        cause += f" (user name and password: {environment.netrc()})"
    if after := response.headers.get("Retry-After"):
        cause += f", Retry-After: {after}"
    return requests.HTTPError(cause, response=response)
