r"""Standard output and standard error, wrapped so that every program writes them in one way.

`prepare_streams` replaces `sys.stdout` and `sys.stderr` by small wrappers:

- Standard output carries data. It is UTF-8 in any locale, and an error in writing it names it.
- Standard error carries messages, which pass through `printable`: secrets are masked, and control
  characters are escaped. A message may quote what others have written, such as the name of a file
  in an archive, and a terminal would obey the control characters in it.
- Work does not end because a message cannot be written: standard error may be closed, full, or a
  pipe that nobody reads.
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

# The control characters that a terminal obeys: C0 except tab and line feed, DEL, and C1.
TERMINAL_CONTROLS = set(range(0x20)) - {ord("\t"), ord("\n")} | set(range(0x7F, 0xA0))
# The characters that reorder a line (the bidirectional controls of Unicode's UAX #9) or end it.
BIDI_MARKS = {0x061C, 0x200E, 0x200F} | set(range(0x202A, 0x202F)) | set(range(0x2066, 0x206A))
LINE_SEPARATORS = {0x2028, 0x2029}
# How `printable` writes each of them.
_ESCAPES = {code: f"\\x{code:02x}" for code in TERMINAL_CONTROLS}
_ESCAPES |= {code: f"\\u{code:04x}" for code in BIDI_MARKS | LINE_SEPARATORS}

# The standard output that `prepare_streams` made; None before. It is kept because the library
# colorama, which DVC uses, replaces `sys.stdout` by a wrapper of its own.
_prepared_stdout: object | None = None


def prepare_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr` by wrappers, so that all programs write alike.

    - Standard output is UTF-8 in any locale. Errors in writing it name it in their message.
    - Standard error masks secrets and control characters. Errors in writing it are ignored.
    - A stream that the caller has closed drops everything that is written.
    """
    global _prepared_stdout
    _open_closed_descriptors()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:  # The caller has closed it.
        sys.stdout = cast(TextIO, _ClosedOutput())
    elif not isinstance(sys.stdout, _NamedStream | _ClosedOutput):  # It is not wrapped yet.
        sys.stdout = cast(TextIO, _NamedStream(sys.stdout, STDOUT))
    # Other libraries may replace sys.stdout; our wrapper is needed again when the program ends.
    _prepared_stdout = sys.stdout
    if sys.stderr is None:  # The caller has closed it.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if not isinstance(sys.stderr, _MessageStream):
        sys.stderr = cast(TextIO, _MessageStream(sys.stderr))


def _open_closed_descriptors() -> None:
    """Connect each standard stream that the caller has closed to the null device.

    Otherwise the next file that this process opens would get the descriptor of the closed stream,
    and messages would be written into it. Programs that this process starts still find the stream
    closed, since Python does not pass the new descriptors on.
    """
    for descriptor in range(3):  # Standard input, standard output and standard error.
        try:
            os.fstat(descriptor)
        except OSError:
            # The operating system assigns the lowest free descriptor, which is this one.
            os.open(os.devnull, os.O_RDWR)


def is_stdout_closed() -> bool:
    """Return whether the caller of this program has closed standard output."""
    return isinstance(_prepared_stdout, _ClosedOutput)


def discard_output() -> None:
    """Drop the text that is buffered for standard output, before the process ends.

    Call this function when writing to standard output has failed. Otherwise Python would try to
    write the buffered text when it exits, and report the same error again.
    """
    if isinstance(_prepared_stdout, _NamedStream):
        _prepared_stdout.forget_failure()
    # From now on, the descriptor of standard output is the null device. In a test, standard output
    # may be an object without a descriptor, which raises an error here.
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextmanager
def text_output(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file for writing in a `with` block.

    If writing fails, for example because the disk is full, the error names the file. Python's own
    error would not.
    """
    file = path.open("w", encoding="utf-8", newline="\n")
    named_file = _NamedStream(file, str(path))
    try:
        yield cast(TextIO, named_file)
        named_file.flush()
    finally:
        # Closing the file writes what is still buffered. After an error, this fails again; the
        # error has been raised already.
        with suppress(OSError):
            file.close()


def printable(text: str) -> str:
    """Return a text for a terminal: secrets are masked, and control characters are escaped."""
    return mask(text).translate(_ESCAPES)


def raw_stderr() -> TextIO:
    """Return standard error as a stream that writes control characters unchanged.

    A progress bar needs control characters to move the cursor. `sys.stderr` escapes them. A caller
    of this function must therefore escape text of unknown origin itself, by `printable`.
    """
    return getattr(sys.stderr, "original", sys.stderr)


class _NamedStream:
    """A stream whose errors name it, and which reports a failed write again at `flush`.

    argparse ignores errors while it prints a help text; `flush` at the end of the program finds
    them all the same.
    """

    def __init__(self, original: TextIO, name: str) -> None:
        """Wrap a stream.

        Args:
            original: The stream.
            name: Its name in messages, such as `standard output`.
        """
        self._original = original
        self._name = name
        # The error of the last write or flush that failed.
        self._failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text; if this fails, keep the error and add the stream's name to it."""
        try:
            return self._original.write(text)
        except OSError as error:
            error.filename = self._name
            self._failure = error
            raise

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each text; they bring their own line ends."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write what is buffered; if an earlier write has failed, raise its error again.

        Some callers of `write`, such as argparse, ignore its errors. They are reported by `flush`,
        which is called at the end of the program.
        """
        if self._failure is not None:
            raise self._failure
        try:
            self._original.flush()
        except OSError as error:
            error.filename = self._name
            self._failure = error
            raise

    def forget_failure(self) -> None:
        """Let `flush` no longer raise the error of an earlier write or flush."""
        self._failure = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _ClosedOutput:
    """A stand-in for a standard output that the caller has closed; it drops every text."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Drop a text, and return its length as if it were written."""
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Drop all texts; an iterator is used up, as by other streams."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False: this stream is not a terminal."""
        return False

    def fileno(self) -> int:
        """Raise OSError, since this stream lacks a file descriptor."""
        raise OSError(f"{STDOUT} is closed")


class _QuietStream:
    """A stream that drops a text which cannot be written, without an error."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        """Write a text if possible, and return its length in either case."""
        with suppress(OSError, ValueError):
            self._original.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, if possible."""
        with suppress(OSError, ValueError):
            self._original.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _MessageStream:
    """A stream that masks secrets and escapes control characters in what is written to it.

    As standard error, it also receives the messages of libraries and tracebacks.

    Attributes:
        original: The stream without these escapes.
    """

    def __init__(self, original: TextIO) -> None:
        self.original = _QuietStream(original)

    def write(self, text: str) -> int:
        """Write the printable form of a text, and return the length of the text itself."""
        self.original.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the printable form of each text."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
