"""Standard output and error: data is UTF-8 in any locale, and a message holds no secret.

A message may quote what others have written, such as the name of a member of an archive or a
server's reason phrase: characters that a terminal would obey or that reorder a line are escaped.

Work does not end because a message cannot be written: standard error may be closed, full, or a pipe
that nobody reads. What cannot be written to standard output is an error that names it.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

from bleuprint.runtime.secrets import mask

# The name of standard output in messages.
STDOUT = "standard output"

# C0 but for tab and line feed, DEL and C1; the bidirectional controls (UAX #9), line separators.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0)), (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F))
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROLS[0] if chr(code) not in "\t\n"} | {
    code: f"\\u{code:04x}" for code in (*_CONTROLS[1], *range(0x2066, 0x206A))
}


# What `prepare` has made of standard output.
_prepared: list[object] = []


def prepare_streams() -> None:
    """Let standard output write UTF-8, and standard error what `shown` makes of its text.

    Streams that the caller has closed are replaced, so that no file is opened in their place.
    """
    _fill_closed()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    elif not isinstance(sys.stdout, _Named | _Closed):
        sys.stdout = cast(TextIO, _Named(sys.stdout, STDOUT))
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    _prepared[:] = [sys.stdout]
    if not isinstance(sys.stderr, _Messages):
        sys.stderr = cast(TextIO, _Messages(sys.stderr))


def _own_output() -> object:
    """Standard output as it was prepared: DVC's colorama puts a wrapper around it."""
    return _prepared[0] if _prepared else None


def is_stdout_closed() -> bool:
    """Whether the caller has closed standard output."""
    return isinstance(_own_output(), _Closed)


def discard_output() -> None:
    """Drop what is still to be written to standard output: Python would report an error at exit."""
    output = _own_output()
    if isinstance(output, _Named):
        output.forget_failure()
    with suppress(OSError, ValueError):  # what a test puts in its place has no descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextmanager
def text_output(path: Path) -> Iterator[TextIO]:
    """A UTF-8 file to write line by line, whose errors name it."""
    file = path.open("w", encoding="utf-8", newline="\n")
    named = _Named(file, str(path))
    try:
        yield cast(TextIO, named)
        named.flush()
    finally:
        with suppress(OSError):  # has been reported
            file.close()


def printable(text: str) -> str:
    """`text` without secrets of addresses (see `mask`), its control characters escaped."""
    return mask(text).translate(_ESCAPES)


def raw_stderr() -> TextIO:
    """Standard error for what moves the cursor, such as a bar; texts in it need `shown`."""
    return getattr(sys.stderr, "original", sys.stderr)


def _fill_closed() -> None:
    """Open the null device in the place of each closed standard stream.

    A process that starts again, or that this one starts, finds it closed as before.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor is this one


class _Named:
    """A stream whose errors name it and come again at `flush`, since argparse ignores the first."""

    def __init__(self, original: TextIO, name: str) -> None:
        self._original, self._name = original, name
        self._failure: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return self._original.write(text)
        except OSError as error:
            error.filename = self._name
            self._failure = error
            raise

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._failure:
            raise self._failure
        try:
            self._original.flush()
        except OSError as error:
            error.filename = self._name
            self._failure = error
            raise

    def forget_failure(self) -> None:
        """Let `flush` raise no error of before."""
        self._failure = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Closed:
    """Stands in for a standard output that the caller has closed: what is printed is dropped."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise OSError(f"{STDOUT} is closed")


class _Quiet:
    """A stream for messages, which are lost where they cannot be written."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._original.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._original.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Messages:
    """A stream that writes what `shown` makes of a text, also that of libraries and tracebacks."""

    def __init__(self, original: TextIO) -> None:
        self.original = _Quiet(original)

    def write(self, text: str) -> int:
        self.original.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
