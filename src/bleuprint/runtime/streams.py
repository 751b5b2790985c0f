"""Standard output and error: data is UTF-8 in any locale, and a message holds no secret.

A message may quote what others have written, such as the name of a member of an archive or a
server's reason phrase: characters that a terminal would obey or that reorder a line are escaped.
"""

import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Any, TextIO, cast

from bleuprint.runtime.secrets import mask

# C0 but for tab and line feed, DEL and C1; the bidirectional controls (UAX #9), line separators.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0)), (0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F))
_ESCAPES = {code: f"\\x{code:02x}" for code in _CONTROLS[0] if chr(code) not in "\t\n"} | {
    code: f"\\u{code:04x}" for code in (*_CONTROLS[1], *range(0x2066, 0x206A))
}


def prepare() -> None:
    """Let standard output write UTF-8, and standard error what `shown` makes of its text."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stderr and not isinstance(sys.stderr, _Messages):
        sys.stderr = cast(TextIO, _Messages(sys.stderr))


def shown(text: str) -> str:
    """`text` without secrets of addresses (see `mask`), its control characters escaped."""
    return mask(text).translate(_ESCAPES)


def terminal() -> TextIO:
    """Standard error for what moves the cursor, such as a bar; texts in it need `shown`."""
    return getattr(sys.stderr, "original", sys.stderr)


class _Messages:
    """A stream that writes what `shown` makes of a text, also that of libraries and tracebacks."""

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def write(self, text: str) -> int:
        self.original.write(shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
