"""Lines of published UTF-8 files; the formats plain, two files, and tsv, columns of one.

A line ends at the byte \\n and nowhere else. A byte order mark at the start of the file and a \\r
before a \\n are removed; all other bytes are kept, NUL included.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat, zip_longest
from typing import BinaryIO

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.utf8 import decode_line
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import Pair

# Lines that are decoded together.
_LINES = 1000


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines without their ends.

    Raises UserError, naming file, line and byte, at bytes that are not UTF-8, and if there are \\r
    but no \\n.
    """
    number, good = 0, 0
    for size in chain([2], repeat(_LINES)):  # the first two are read with care
        if not (lines := [*islice(stream, size)]):
            return
        block = b"".join(lines)
        text = block.decode(errors="ignore")
        if number and block.endswith(b"\n") and text.encode() == block:
            good += not text.isascii()
            number += len(lines)
            yield from text.replace("\r\n", "\n").split("\n")[:-1]
            continue
        for place, line in enumerate(lines, 1):
            number += 1
            text = decode_line(line, name, number, chain(lines[place:], stream), good)
            good += not text.isascii()
            if number == 1:
                text = text.removeprefix("\ufeff")
            yield text.removesuffix("\r\n").removesuffix("\n")


def read_plain(streams: Sequence[BinaryIO], names: Sequence[str]) -> Iterator[Pair]:
    """The pairs of two files; raises UserError if one has more lines than the other."""
    sides = [read_lines(stream, name) for stream, name in zip(streams, names, strict=True)]
    for number, lines in enumerate(zip_longest(*sides)):
        if None in lines:
            counts = [
                number + (line is not None) + sum(1 for _ in side)
                for line, side in zip(lines, sides, strict=True)
            ]
            first = counted(counts[0], "line")
            raise UserError(f"{names[0]} has {first} and {names[1]} has {counts[1]}: not parallel")
        yield Pair._make(lines)


def read_tsv(stream: BinaryIO, name: str, columns: tuple[int | str, int | str]) -> Iterator[Pair]:
    """Yield the pairs of a file with tabs between its columns, without quoting.

    Args:
        stream: the bytes of the file.
        name: the file's name in messages.
        columns: source and target, by their numbers from 1, or by their names in the first line of
            the file, which then is no pair.

    Raises:
        UserError: a line, or the first line, lacks a column.
    """
    lines = enumerate(read_lines(stream, name), 1)
    numbers = []
    header: list[str] | None = None
    for column in columns:
        if isinstance(column, int):
            numbers.append(column)
            continue
        if header is None:
            _, first_line = next(lines, (1, ""))
            header = first_line.split("\t")
        numbers.append(_column_named(column, header, name))
    source, target = numbers
    for line_number, line in lines:
        fields = line.split("\t")
        if len(fields) < max(numbers):
            raise UserError(
                f"{name}:{line_number}: columns {source} and {target} are needed, "
                f"and the line has {len(fields)}"
            )
        yield Pair(fields[source - 1], fields[target - 1])


def _column_named(column: str, header: Sequence[str], name: str) -> int:
    """Return the number, from 1, of a column in the first line of a table."""
    names = [cell.strip() for cell in header]
    found = names.count(column)
    if found == 1:
        return names.index(column) + 1
    shown = ", ".join(map(repr, names))
    if found:
        raise UserError(
            f"{name}:1: {found} columns are named {column!r}; use numbers. Columns: {shown}"
        )
    raise UserError(f"{name}:1: no column is named {column!r}. Columns: {shown}")
