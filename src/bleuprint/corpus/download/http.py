"""One URL into one file over HTTP, going on where an earlier try or process broke off.

What has come lies in the partial file; a note beside it says from which URL it came and which
version of the file it was, so that the rest is asked for of that version and no other.
"""

import http.client
import os
import re
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from bleuprint.config.corpus_files import File
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.runtime.progress import Progress

# A try that brings ENOUGH bytes more than any before it counts as the first again.
TRIES = 5
ENOUGH = 1 << 20
# Seconds: before the second try, then doubled each time; what a host may ask us to wait.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
TIMEOUT = 30.0
_BLOCK = 1 << 18
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_HEADERS = {"User-Agent": "bleuprint", "Accept-Encoding": "identity"}


class Unreachable(UserError):
    """A host did not give what was asked of it."""


def transfer(url: str, partial: Path, file: File) -> bool:
    """Bring what `url` holds into `partial`, trying again and going on where that may help.

    `file` says what is known of it beforehand. Returns whether it was put together from more
    than one answer, of which the last may not have fitted the others. Raises UserError.
    """
    failed, most = 0, _size(partial)
    while True:
        try:
            return _attempt(url, partial, file)
        except _Trouble as trouble:
            failed = 1 if _size(partial) >= most + ENOUGH else failed + 1
            most = max(most, _size(partial))
            pause = max(trouble.pause, FIRST_PAUSE * 2 ** (failed - 1))
            if not trouble.passing or failed == TRIES or pause > LONGEST_PAUSE:
                raise Unreachable(f"{url}: cannot be fetched: {trouble}") from None
            print(f"{url}: {trouble}; trying again", file=sys.stderr, flush=True)
            time.sleep(pause)


def discard(partial: Path) -> None:
    """Remove what came of a file, and the note about it."""
    partial.unlink(missing_ok=True)
    _note_of(partial).unlink(missing_ok=True)


class _Trouble(Exception):
    """A try failed; if it is `passing`, another may do better after `pause` seconds."""

    def __init__(self, cause: str, passing: bool = True, pause: float = 0.0) -> None:
        super().__init__(" ".join(cause.split()))
        self.passing, self.pause = passing, pause


@dataclass(frozen=True)
class _Note:
    """Where a partial file came from, its version (a strong ETag or a date) and whole size."""

    url: str
    version: str | None
    total: int | None


def _note_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _attempt(url: str, partial: Path, file: File) -> bool:
    """Ask once for the file or its rest; says whether it went on from what was there."""
    note = _to_continue(url, partial, file)
    if note is None:
        with _ask(url, {}) as answer:
            if answer.status != 200:
                raise _Trouble(f"status {answer.status} instead of 200", passing=False)
            _start(url, partial, file, answer)
        return False
    begin = _size(partial)
    asked = {"Range": f"bytes={begin}-"}
    if note.version is not None:
        asked["If-Range"] = note.version
    with _ask(url, asked) as answer:
        if answer.status == 200:
            _start(url, partial, file, answer)
            return False
        span = _span(answer.headers)
        if (
            answer.status == 206
            and span.begin == begin
            and _same_version(answer.headers, note, file)
        ):
            _copy(answer, partial, url, begin, _checked(url, file, span.total or note.total))
            return True
        if answer.status == 416 and span.total == begin and note.total in (None, begin):
            return True  # it was all there
    discard(partial)
    return _attempt(url, partial, file)


def _to_continue(url: str, partial: Path, file: File) -> _Note | None:
    """What is known of a partial file that may be gone on with; None to start anew.

    Without a version to ask for, what is put together must have a sum to be checked by.
    """
    if not _size(partial):
        return None
    nothing = _Note(url, None, None)
    note = _Note(**read_json(_note_of(partial))) if _note_of(partial).exists() else nothing
    if note.url != url:  # another host: its versions mean nothing here
        return nothing if file.sha256 is not None else None
    return note if note.version or file.sha256 is not None else None


def _start(url: str, partial: Path, file: File, answer: Any) -> None:
    """Write a whole file from its beginning."""
    length = answer.headers.get("Content-Length", "")
    total = _checked(url, file, int(length) if length.isdecimal() else None)
    discard(partial)
    write_json(_note_of(partial), asdict(_Note(url, _version(answer.headers), total)))
    _copy(answer, partial, url, 0, total)


def _checked(url: str, file: File, total: int | None) -> int | None:
    """The size a host gives, if it may be right: a wrong file need not be fetched to its end."""
    if None not in (total, file.size) and total != file.size:
        raise UserError(f"{url}: expected {file.size} bytes, found {total}")
    return total


def _copy(answer: Any, partial: Path, url: str, begin: int, total: int | None) -> None:
    """Append what comes to the partial file, as soon as it comes."""
    done = begin
    with (
        Progress(url.rpartition("/")[2] or url, total, "B", start=begin) as progress,
        partial.open("ab") as out,
    ):
        while done != total:
            with _troubles():
                block = answer.read1(_BLOCK if total is None else min(_BLOCK, total - done))
            if not block:
                break
            out.write(block)
            done += len(block)
            progress.advance(len(block))
        out.flush()
        os.fsync(out.fileno())
    if total is not None and done != total:
        raise _Trouble(f"{done} of {total} bytes came")


def _ask(url: str, headers: dict[str, str]) -> Any:
    """The answer to a GET, whose status is 200 or another of success, or 416 to a range."""
    # Of what may not stand in a request, publishers' addresses have spaces and accents.
    quoted = quote(url, safe="!#$%&'()*+,/:;=?@[]~")
    with _troubles():
        try:
            return urlopen(Request(quoted, headers=_HEADERS | headers), timeout=TIMEOUT)
        except HTTPError as error:
            if error.code == 416 and headers:
                return error
            error.close()
            raise


@contextmanager
def _troubles() -> Iterator[None]:
    """What goes wrong between us and a host, as _Trouble."""
    try:
        yield
    except HTTPError as error:
        passing = error.code in _TRY_AGAIN
        cause = f"HTTP {error.code} {error.reason}"
        pause = _retry_after(error.headers)
        if passing and pause > LONGEST_PAUSE:
            cause += f", which asks us to wait {pause:.0f} s"
        raise _Trouble(cause, passing, pause) from None
    except http.client.InvalidURL as error:
        raise _Trouble(str(error), passing=False) from None
    except (OSError, http.client.HTTPException) as error:
        root = error.reason if isinstance(error, URLError) else error
        passing = not isinstance(root, ssl.SSLCertVerificationError)
        raise _Trouble(str(root) or type(root).__name__, passing) from None


def _retry_after(headers: Message) -> float:
    """The seconds a host asks us to wait, given as such or as a date; 0 where it does not."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def _version(headers: Message) -> str | None:
    """What If-Range may ask for: an ETag, unless it is a weak one, or else a date."""
    tag = headers.get("ETag")
    if tag is not None and tag.startswith('"'):
        return str(tag)
    date: str | None = headers.get("Last-Modified")
    return date


def _same_version(headers: Message, note: _Note, file: File) -> bool:
    """Whether a part belongs to what is there: not every host heeds If-Range.

    A part that does not say its version may be taken only where a sum tells in the end.
    """
    version, total = _version(headers), _span(headers).total
    unknown = None in (note.version, version)
    same = file.sha256 is not None if unknown else note.version == version
    return same and (None in (note.total, total) or note.total == total)


@dataclass(frozen=True)
class _Span:
    """What Content-Range says; None for what it does not."""

    begin: int | None
    total: int | None


def _span(headers: Message) -> _Span:
    value = headers.get("Content-Range", "")
    found = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(?:(\d+)|\*)", value)
    begin, total = found.groups() if found else (None, None)
    return _Span(int(begin) if begin else None, int(total) if total else None)
