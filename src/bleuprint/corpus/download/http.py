"""Downloads one URL to a file over HTTP: retries with pauses, and resumes a partial file.

Proxies, certificates and ~/.netrc are handled by requests. Its own retries (urllib3's Retry) are
not used: they wait in silence, as long as a host says, and do not resume.
"""

import socket
import sys
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from bleuprint.config.corpus_files import File
from bleuprint.runtime import environment
from bleuprint.runtime.errors import Unreachable, UserError
from bleuprint.runtime.progress import Progress

# A download fails after so many attempts in a row that each add fewer than MIN_PROGRESS_BYTES.
MAX_ATTEMPTS = 5
MIN_PROGRESS_BYTES = 1 << 20
# The pause after the first attempt, in seconds; it doubles after each further attempt.
FIRST_PAUSE_SECONDS = 1.0
# A host that asks for a longer pause, in seconds, is given up.
MAX_PAUSE_SECONDS = 300.0
# A host may be silent for so many seconds.
TIMEOUT_SECONDS = 30.0
# An attempt ends if fewer than MIN_BYTES_PER_PERIOD of the body arrive within PERIOD_SECONDS.
PERIOD_SECONDS = 60.0
MIN_BYTES_PER_PERIOD = 1 << 16
_BLOCK_BYTES = 1 << 14
# HTTP statuses after which another attempt may succeed.
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
_OK = 200
_PARTIAL_CONTENT = 206
_UNAUTHORIZED = 401
_RANGE_NOT_SATISFIABLE = 416
# `identity` asks for the bytes as they are: a .gz file must arrive as it was hashed.
_HEADERS = {"User-Agent": "bleuprint", "Accept-Encoding": "identity"}


def transfer(url: str, partial: Path, file: File) -> None:
    """Download a URL to a file, in several attempts if necessary.

    If the SHA-256 of the file is known, an attempt continues where the last one ended. Otherwise
    each attempt starts anew: the parts might come from different versions of the file, and without
    a SHA-256 nobody would notice. The download is given up after five failed attempts in a row; one
    that adds a megabyte or more before it fails starts the count anew.

    Args:
        url: The URL.
        partial: The file to write to. Bytes that it contains already are the start of the download.
        file: The settings of the file, with its size and SHA-256 if they are known.

    Raises:
        UserError: The file has another size than expected.
        Unreachable: All attempts failed.
    """
    can_resume = file.sha256 is not None
    failed_attempts = 0
    while True:
        start = _size(partial) if can_resume else 0
        try:
            return _attempt(url, partial, start, file.size)
        # The errors of requests, of a connection that breaks, and of a malformed response.
        except (requests.RequestException, HTTPError, ValueError) as error:
            added_bytes = _size(partial) - start if can_resume else 0
            if added_bytes >= MIN_PROGRESS_BYTES:
                failed_attempts = 0
            failed_attempts += 1
            cause = " ".join(str(error).split())  # In one line.
            pause = _pause_before_retry(error, failed_attempts)
            if pause is None:
                raise Unreachable(f"{url}: cannot be downloaded: {cause}") from None
            print(f"{url}: {cause}. Trying again", file=sys.stderr, flush=True)
            time.sleep(pause)


def _pause_before_retry(error: Exception, failed_attempts: int) -> float | None:
    """Return how many seconds to wait before the next attempt of a download, or None to give up.

    The pause doubles with each failure: 1, 2, 4 and 8 seconds. It is longer if the host asks for
    that. A host that asks for more than five minutes is given up.

    Args:
        error: The error of the last attempt.
        failed_attempts: The number of failed attempts, at least 1.
    """
    min_pause = _min_pause(error)
    if min_pause is None or failed_attempts == MAX_ATTEMPTS:
        return None
    pause: float = max(min_pause, FIRST_PAUSE_SECONDS * 2 ** (failed_attempts - 1))
    if pause > MAX_PAUSE_SECONDS:
        return None
    return pause


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def _min_pause(error: Exception) -> float | None:
    """Decide whether a failed download may be tried again, and after which pause at least.

    Args:
        error: The error with which it failed.

    Returns:
        The shortest pause in seconds: what the host asks for by the header Retry-After, or 0.
        None if another attempt would fail as well.
    """
    response = getattr(error, "response", None)
    if response is None:
        # The host did not answer, or the connection broke.
        is_connection_lost = isinstance(
            error, requests.ConnectionError | requests.Timeout | HTTPError
        )
        return 0.0 if is_connection_lost else None
    if response.status_code not in _TRANSIENT_STATUSES:
        return None
    retry_after = response.headers.get("Retry-After", "").strip()
    return float(retry_after) if retry_after.isdecimal() else 0.0


def _attempt(url: str, partial: Path, start: int, size: int | None) -> None:
    """Try once to download a URL, or the rest of it after an interrupted attempt.

    Args:
        url: The URL.
        partial: The file to write to.
        start: How many bytes of the download the file contains already; 0 to start anew.
        size: The expected size of the download in bytes; None if it is unknown.

    Raises:
        UserError: The host offers a file of another size.
        requests.RequestException: The request failed.
        HTTPError: The connection broke while the body was read.
    """
    headers = dict(_HEADERS)
    if start:
        headers["Range"] = f"bytes={start}-"

    def check_redirect(response: requests.Response, **_: Any) -> None:
        """Refuse an unsafe redirect before it is followed."""
        _check_redirect(url, response)

    with requests.get(
        url,
        headers=headers,
        stream=True,
        timeout=TIMEOUT_SECONDS,
        hooks={"response": check_redirect},
    ) as response:
        status = response.status_code
        if start and status == _RANGE_NOT_SATISFIABLE:
            return  # The file is complete: the host has no bytes after `start`.
        is_resumed = start > 0 and status == _PARTIAL_CONTENT
        if status != _OK and not is_resumed:
            raise _status_error(response)
        if not is_resumed:
            start = 0  # The host sends all bytes, even if only the rest was requested.
        # The number of bytes that the host will send now.
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        if total is not None and size is not None and total != size:
            raise UserError(f"{url}: expected {size} bytes, found {total}")
        shown_name = url.rpartition("/")[2] or url
        progress = Progress(shown_name, total, "B", start=start)
        with progress, partial.open("ab" if is_resumed else "wb") as output:
            _write_body(response, output, progress, size)


def _write_body(
    response: requests.Response, output: BinaryIO, progress: Progress, size: int | None
) -> None:
    """Write the bytes that a host sends to a file, and give up if they arrive too slowly.

    Args:
        response: The response of the host.
        output: The file.
        progress: The progress bar.
        size: The expected size of the file in bytes; None if it is unknown. Writing stops when the
            file is larger.

    Raises:
        requests.ConnectionError: Fewer than 64 KB arrived in a minute.
    """
    # Speed is measured in periods of a minute.
    period_start = time.monotonic()
    bytes_in_period = 0
    while block := response.raw.read1(_BLOCK_BYTES, decode_content=False):
        output.write(block)
        progress.advance(len(block))
        bytes_in_period += len(block)
        if size is not None and output.tell() > size:
            return  # The caller reports the wrong size.
        if time.monotonic() - period_start > PERIOD_SECONDS:
            if bytes_in_period < MIN_BYTES_PER_PERIOD:
                raise requests.ConnectionError(
                    f"fewer than {MIN_BYTES_PER_PERIOD} bytes came in {PERIOD_SECONDS:g} seconds"
                )
            period_start = time.monotonic()
            bytes_in_period = 0


def _check_redirect(url: str, response: requests.Response) -> None:
    """Refuse a redirect from a public host to this machine or its network.

    By such a redirect, a foreign host could make this program read from services that only this
    network may use. A mirror on this machine or network may redirect within it.

    Args:
        url: The URL that was requested first.
        response: The response, which may be a redirect.

    Raises:
        Unreachable: The redirect is refused.
    """
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["Location"])
    if _is_internal(target) and not _is_internal(url):
        raise Unreachable(
            f"{url}: redirects to {target}, an address of this machine or its network. "
            "If the file is there, write that address"
        )


def _is_internal(url: str) -> bool:
    """Return whether the host of a URL is this machine or in its network, not on the internet.

    A host whose addresses cannot be looked up, as behind a proxy, counts as public.
    """
    host = urlsplit(url).hostname or ""
    try:
        entries = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    for _, _, _, _, socket_address in entries:
        # An IPv6 address may end in a zone: fe80::1%eth0.
        address = str(socket_address[0]).partition("%")[0]
        if not ip_address(address).is_global:
            return True
    return False


def _status_error(response: requests.Response) -> requests.HTTPError:
    """Return the error for a response without a file, such as 404 Not Found.

    It contains the header Retry-After, by which an overloaded host asks for a pause.
    """
    cause = f"HTTP {response.status_code} {response.reason}"
    if response.status_code == _UNAUTHORIZED:
        cause += f" (user name and password belong in {environment.netrc_file()})"
    retry_after = response.headers.get("Retry-After")
    if retry_after:
        cause += f", Retry-After: {retry_after}"
    return requests.HTTPError(cause, response=response)
