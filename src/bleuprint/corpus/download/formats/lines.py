r"""Lines of published UTF-8 files; the formats plain, two files, and tsv, columns of one file.

A line ends at the byte \n and nowhere else. A byte order mark at the start of the file and a \r
before a \n are removed; all other bytes are kept, NUL included.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import BinaryIO

from bleuprint.corpus.download.formats.scores import ScoreLimit
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.utf8 import decode_line
from bleuprint.runtime.wording import counted, join_with_and
from bleuprint.text.parallel import Pair

# So many lines are decoded together, which is faster than line by line.
_BATCH_LINES = 1000
# The first lines are decoded one by one: they show whether a file is packed or of another encoding.
_CAREFUL_LINES = 2
_BYTE_ORDER_MARK = "\ufeff"


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    r"""Decode the lines of a UTF-8 file, without a byte order mark and without line ends.

    For speed, many lines are decoded at once. If they contain bytes that are not UTF-8, they are
    decoded again one by one, so that the error names the first bad line.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: The file is not UTF-8 (the message names line and byte), or it contains \r but
            no \n.
    """
    line_number = 0  # The line that was read last.
    # Roughly how many lines so far are UTF-8 beyond ASCII (a batch counts as one). If there are
    # any, a message about a bad line advises against converting the file from another encoding.
    utf8_lines = 0
    while True:
        # The first batch is decoded line by line, because the first two lines show if a file is of
        # another kind, such as compressed.
        is_first_batch = line_number == 0
        lines = list(islice(stream, _CAREFUL_LINES if is_first_batch else _BATCH_LINES))
        if not lines:
            return
        batch = b"".join(lines)
        # Decoding skips bytes that are not UTF-8. If any were skipped, encoding gives fewer bytes.
        text = batch.decode(errors="ignore")
        is_utf8 = text.encode() == batch
        if is_utf8 and batch.endswith(b"\n") and not is_first_batch:
            if not text.isascii():
                utf8_lines += 1
            line_number += len(lines)
            # The last element, after the last \n, is empty. No variable holds the lines: they would
            # stay in memory while the next ones are read.
            yield from text.replace("\r\n", "\n").split("\n")[:-1]
            continue
        # One by one: the first lines of the file, the last one, and lines with a bad byte.
        for position, line in enumerate(lines, 1):
            line_number += 1
            # The error message for a bad line depends on the lines that follow it.
            following_lines = chain(lines[position:], stream)
            text = decode_line(line, name, line_number, following_lines, utf8_lines)
            if not text.isascii():
                utf8_lines += 1
            if line_number == 1:
                text = text.removeprefix(_BYTE_ORDER_MARK)
            yield text.removesuffix("\r\n").removesuffix("\n")


def read_plain(streams: Sequence[BinaryIO], names: Sequence[str]) -> Iterator[Pair]:
    """Read the sentence pairs of two files whose lines translate each other.

    Args:
        streams: The bytes of the source and the target file.
        names: The names of both files in messages.

    Raises:
        UserError: One file has more lines than the other.
    """
    source_lines = read_lines(streams[0], names[0])
    target_lines = read_lines(streams[1], names[1])
    for pairs_before, (source, target) in enumerate(zip_longest(source_lines, target_lines)):
        if source is None or target is None:
            source_count = pairs_before + _count_rest(source, source_lines)
            target_count = pairs_before + _count_rest(target, target_lines)
            raise UserError(
                f"{names[0]} has {counted(source_count, 'line')}, but {names[1]} has "
                f"{target_count}, so they are not parallel"
            )
        yield Pair(source, target)


def _count_rest(line: str | None, following_lines: Iterator[str]) -> int:
    """Count how many lines a file has from the current line on, to report how long the file is.

    Args:
        line: The current line; None if the file has ended.
        following_lines: The lines after it.
    """
    count = 0 if line is None else 1
    for _ in following_lines:
        count += 1
    return count


def read_tsv(
    stream: BinaryIO,
    name: str,
    columns: tuple[int | str, int | str],
    limit: ScoreLimit | None = None,
) -> Iterator[Pair]:
    """Read the sentence pairs of a table, whose columns are separated by tabs.

    Quotation marks have no special meaning: they are part of the text.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        columns: The source and the target column: their numbers, from 1, or their names in the
            first line of the file. With a name, the first line is a header, not a pair.
        limit: Drops pairs by a column of scores; None to keep all pairs.

    Raises:
        UserError: A line, or the first line, lacks a column, or a score is not a number.
    """
    numbered_lines = enumerate(read_lines(stream, name), 1)
    rows = ((line_number, line.split("\t")) for line_number, line in numbered_lines)
    yield from pairs_of_rows(rows, name, columns, limit)


def pairs_of_rows(
    rows: Iterator[tuple[int, list[str]]],
    name: str,
    columns: tuple[int | str, int | str],
    limit: ScoreLimit | None,
) -> Iterator[Pair]:
    """Yield the sentence pairs in the rows of a table.

    Args:
        rows: The rows: the number of the first line and the cells of each.
        name: The name of the file in messages.
        columns: The source and the target column: their numbers, from 1, or their names in the
            first row. With a name, the first row is a header, not a pair.
        limit: Drops pairs by a column of scores; None to keep all pairs.

    Raises:
        UserError: A row, or the first row, lacks a column, or a score is not a number.
    """
    all_columns = list(columns)
    if limit is not None:
        all_columns.append(limit.column)
    has_header = any(isinstance(column, str) for column in all_columns)
    header: list[str] = []
    if has_header:
        _, header = next(rows, (1, [""]))  # An empty file has an empty header.
    column_numbers = []
    for column in all_columns:
        if isinstance(column, str):
            column_numbers.append(_column_number(column, header, name))
        else:
            column_numbers.append(column)
    source_column, target_column, *score_columns = column_numbers
    for line_number, cells in rows:
        if len(cells) < max(column_numbers):
            raise UserError(
                f"{name}:{line_number}: the line has {counted(len(cells), 'column')}, but columns "
                f"{join_with_and(map(str, column_numbers))} are needed"
            )
        if limit is not None:
            [score_column] = score_columns
            if not limit.keeps(cells[score_column - 1], f"{name}:{line_number}"):
                continue
        # Columns are numbered from 1, list elements from 0.
        yield Pair(source=cells[source_column - 1], target=cells[target_column - 1])


def _column_number(column: str, header: Sequence[str], name: str) -> int:
    """Look up a column of a table by its name.

    Args:
        column: The name of the column.
        header: The names of all columns, from the first line of the table.
        name: The name of the file in messages.

    Returns:
        The number of the column, from 1.

    Raises:
        UserError: No column or several columns have this name.
    """
    column_names = [cell.strip() for cell in header]
    occurrences = column_names.count(column)
    if occurrences == 1:
        return column_names.index(column) + 1  # Columns are numbered from 1.
    listed = ", ".join(repr(column_name) for column_name in column_names)
    if occurrences > 1:
        raise UserError(
            f"{name}:1: {occurrences} columns are named {column!r}. Use numbers. Columns: {listed}"
        )
    raise UserError(f"{name}:1: no column is named {column!r}. Columns: {listed}")
