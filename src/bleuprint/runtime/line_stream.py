"""Reads the lines of a stream as they arrive, in batches of those that are available."""

from collections.abc import Iterator
from io import BufferedReader, BytesIO

from bleuprint.runtime.not_utf8 import not_utf8

Line = tuple[int, str]

_BLOCK = 1 << 20


def read_lines_together(
    stream: BufferedReader | BytesIO, name: str, most: int
) -> Iterator[list[Line]]:
    """Batches of 1 to `most` lines of a stream with their numbers, from 1.

    Yields whatever is available, so that interactive callers get a reply per line. A line ends at
    \\n alone. Raises UserError at bytes that are not UTF-8, after the lines before them.
    """
    before, rest, ended = 0, b"", False
    while not ended:
        block = stream.read1(_BLOCK)
        ended = not block
        *lines, rest = (rest + block).split(b"\n")
        if ended and rest:
            lines.append(rest)
        for start in range(0, len(lines), most):
            yield from _decoded(lines[start : start + most], name, before + start + 1)
        before += len(lines)


def _decoded(lines: list[bytes], name: str, first: int) -> Iterator[list[Line]]:
    decoded: list[Line] = []
    for number, line in enumerate(lines, first):
        try:
            decoded.append((number, line.decode()))
        except UnicodeDecodeError as error:
            if decoded:
                yield decoded
            raise not_utf8(line, error.start, name, number) from None
    yield decoded
