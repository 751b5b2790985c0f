"""Download of one URL to a file over HTTP: retries with pauses, and resumes a partial file.

Proxies, certificates and ~/.netrc are handled by requests. Its own retries (urllib3's Retry) are
not used: they wait in silence, as long as a host says, and do not resume.
"""

import socket
import sys
import time
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from bleuprint.config.corpus_files import File
from bleuprint.runtime import environment
from bleuprint.runtime.errors import Unreachable, UserError
from bleuprint.runtime.progress import Progress

# An attempt that adds MIN_PROGRESS bytes to the partial file resets the number of attempts.
ATTEMPTS = 5
MIN_PROGRESS = 1 << 20
# Seconds: the pause after the first attempt, doubled after each further one; the longest pause; how
# long a host may be silent.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
TIMEOUT = 30.0
# An attempt ends if of the body fewer than SLOWEST bytes come within PERIOD seconds.
PERIOD = 60.0
SLOWEST = 1 << 16
_BLOCK = 1 << 14
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
# No encoding: a .gz file must come as it was hashed.
_HEADERS = {"User-Agent": "bleuprint", "Accept-Encoding": "identity"}


def transfer(url: str, partial: Path, file: File) -> None:
    """Download `url` to `partial`, if the SHA-256 is known only what that lacks; raises UserError.

    Without it the parts may come from different versions of the file. Of a file that is larger than
    its known size only a little more is read.
    """
    failed, resume = 0, file.sha256 is not None
    while True:
        begin = partial.stat().st_size if resume and partial.exists() else 0
        try:
            return _attempt(url, partial, begin, file.size)
        except (requests.RequestException, HTTPError, ValueError) as error:
            added = partial.stat().st_size - begin if resume and partial.exists() else 0
            failed = 1 if added >= MIN_PROGRESS else failed + 1
            cause, retry_after = " ".join(str(error).split()), _retry_after(error)
            pause = max(retry_after or 0.0, FIRST_PAUSE * 2 ** (failed - 1))
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


def _attempt(url: str, partial: Path, begin: int, size: int | None) -> None:
    """One request for the file from byte `begin`; raises what requests and urllib3 raise."""
    headers = _HEADERS | ({"Range": f"bytes={begin}-"} if begin else {})
    with requests.get(
        url,
        headers=headers,
        stream=True,
        timeout=TIMEOUT,
        hooks={"response": lambda each, **_: _check_redirect(url, each)},
    ) as response:
        if begin and response.status_code == 416:  # the partial file is complete, or longer
            return
        if response.status_code not in ((200, 206) if begin else (200,)):
            raise _refusal(response)
        begin = begin if response.status_code == 206 else 0
        length = response.headers.get("Content-Length", "")
        total = begin + int(length) if length.isdecimal() else None
        if None not in (total, size) and total != size:
            raise UserError(f"{url}: expected {size} bytes, found {total}")
        with (
            Progress(url.rpartition("/")[2] or url, total, "B", start=begin) as progress,
            partial.open("ab" if begin else "wb") as out,
        ):
            start, received = time.monotonic(), 0
            while block := response.raw.read1(_BLOCK, decode_content=False):
                out.write(block)
                progress.advance(len(block))
                received += len(block)
                if size is not None and out.tell() > size:
                    return
                if time.monotonic() - start > PERIOD:
                    if received < SLOWEST:
                        slow = f"fewer than {SLOWEST} bytes in {PERIOD:g} seconds"
                        raise requests.ConnectionError(slow)
                    start, received = time.monotonic(), 0


def _check_redirect(url: str, response: requests.Response) -> None:
    """Raise Unreachable at a redirect from a public host to this machine or its network.

    A host elsewhere has no business with what listens there. A mirror on this machine or network
    may redirect within it.
    """
    if not response.is_redirect:
        return
    target = urljoin(response.url, response.headers["Location"])
    if _is_internal(target) and not _is_internal(url):
        raise Unreachable(
            f"{url}: redirects to {target}, an address of this machine or its network; "
            "if that is the file, use that address"
        )


def _is_internal(url: str) -> bool:
    """Whether a host has an address that is not of the public internet, such as localhost.

    Hosts whose addresses are not known here, as behind a proxy, are taken to be public.
    """
    host = urlsplit(url).hostname or ""
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None)
        addresses = {ip_address(str(entry[4][0]).partition("%")[0]) for entry in found}
        return any(not address.is_global for address in addresses)
    return False


def _refusal(response: requests.Response) -> requests.HTTPError:
    cause = f"HTTP {response.status_code} {response.reason}"
    if response.status_code == 401:
        cause += f" (user name and password: {environment.netrc_file()})"
    if after := response.headers.get("Retry-After"):
        cause += f", Retry-After: {after}"
    return requests.HTTPError(cause, response=response)
