"""Lines are read as they arrive: one at once from an interactive caller, many as a batch."""

import io
import os
import threading
from collections.abc import Iterator

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.line_stream import Line, read_lines_together


def read(data: bytes, most: int = 3) -> list[list[Line]]:
    return list(read_lines_together(io.BytesIO(data), "x", most))


def test_lines_end_at_line_feeds_alone() -> None:
    content = "\ufeffa\r\n\u2028b\x0c\n\ufeff\nla\rst".encode()
    found = [line for lines in read(content) for line in lines]
    assert found == [(1, "a"), (2, "\u2028b\x0c"), (3, "\ufeff"), (4, "la\rst")]
    assert read(b"") == []


def test_never_more_than_asked_for_and_never_none() -> None:
    sizes = [len(lines) for lines in read(b"a\n" * 1000)]
    assert sum(sizes) == 1000
    assert set(sizes) <= {1, 2, 3}


def test_a_caller_that_waits_after_each_line_gets_it() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        lines = read_lines_together(stream, "x", 100)
        try:
            for number in (1, 2):
                os.write(writing, b"hello\n")
                answer = next_within(lines, 10)
                assert answer == [(number, "hello")]
        finally:
            os.close(writing)
        assert list(lines) == []


def next_within(lines: Iterator[list[Line]], seconds: float) -> list[Line] | None:
    """The next batch of lines; None if it takes longer than `seconds`."""
    found: list[list[Line]] = []
    waiting = threading.Thread(target=lambda: found.append(next(lines)), daemon=True)
    waiting.start()
    waiting.join(seconds)
    return found[0] if found else None


def test_lines_across_blocks_are_whole() -> None:
    count = 300_000  # of about seven bytes, in blocks of a mebibyte
    found = read("".join(f"{number}\n" for number in range(1, count + 1)).encode(), 1000)
    assert [line for lines in found for line in lines] == [
        (number, str(number)) for number in range(1, count + 1)
    ]


def test_lines_before_a_bad_one_are_not_lost() -> None:
    lines = read_lines_together(io.BytesIO(b"a\n" * 999 + b"\xc3(\nd\n"), "in.txt", 2000)
    found = []
    with pytest.raises(UserError, match=r"in\.txt:1000: byte 1 of the line is 0xc3: not UTF-8"):
        for some in lines:
            found += some
    assert found == [(number, "a") for number in range(1, 1000)]
