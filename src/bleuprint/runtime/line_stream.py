"""Reads the lines of a stream as they arrive, in batches of those that are available."""

import os
from collections.abc import Iterator
from io import BufferedReader, BytesIO
from itertools import chain
from stat import S_ISREG

from bleuprint.runtime.not_utf8 import not_text, not_utf8

Line = tuple[int, str]

_BLOCK = 1 << 20


def read_lines_together(
    stream: BufferedReader | BytesIO, name: str, most: int
) -> Iterator[list[Line]]:
    """Batches of 1 to `most` lines of a stream with their numbers, from 1.

    Yields whatever is available, so that interactive callers get a reply per line. A line ends at
    \\n alone. A byte order mark at the start and a \\r at the end of a line are removed, as in the
    files of a corpus. Raises UserError at bytes that are not UTF-8, after the lines before them.
    """
    before, rest, ended, fields = 0, b"", False, 0
    while not ended:
        block = stream.read1(_BLOCK)
        ended = not block
        lines = BytesIO(rest + block).readlines()
        rest = b"" if ended or not lines or lines[-1].endswith(b"\n") else lines.pop()
        for start in range(0, len(lines), most):
            batch: list[Line] = []
            for place, line in enumerate(lines[start : start + most], start):
                try:
                    text = _decoded(line, before + place + 1)
                except ValueError:
                    if batch:
                        yield batch
                    others = chain(lines[place:], _left(stream, rest))
                    raise not_utf8(name, others, before + place + 1, fields) from None
                fields += not text.isascii()
                batch.append((before + place + 1, text))
            yield batch
        before += len(lines)


def _decoded(line: bytes, number: int) -> str:
    """The text of a line; raises ValueError if it is not UTF-8."""
    if number <= 2 and not_text(line, number):
        raise ValueError
    text = line.decode().removesuffix("\n").removesuffix("\r")
    return text.removeprefix("\ufeff") if number == 1 else text


def _left(stream: BufferedReader | BytesIO, rest: bytes) -> Iterator[bytes]:
    """The lines after those that were read, if they can be had without waiting for a writer."""
    if isinstance(stream, BytesIO) or S_ISREG(os.fstat(stream.fileno()).st_mode):
        if line := rest + stream.readline():
            yield line
        yield from stream
