r"""The formats of tables with named columns, csv, jsonl and parquet, and the reader of csv.

`read_table` is the entry point; records.py and parquet.py contain the readers of the other two. The
format tsv, whose cells are never quoted, is in lines.py.
"""

import csv
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from bleuprint.config.corpus_files import Text
from bleuprint.corpus.download.formats.lines import pairs_of_rows, read_lines
from bleuprint.corpus.download.formats.parquet import read_parquet
from bleuprint.corpus.download.formats.records import (
    PairChoice,
    columns_by_language,
    in_one_line,
    read_json_lines,
)
from bleuprint.corpus.download.formats.scores import ScoreLimit, score_limit
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# The characters that may separate the cells of a .csv file, in the order of preference. Programs
# write semicolons where the comma is the decimal separator, as in German.
_DELIMITERS = ",;\t"
# A longer cell is taken for a missing quotation mark, after which a cell would swallow the file.
_MAX_CELL_CHARACTERS = 1 << 24


def read_table(
    text: Text, stream: BinaryIO, languages: tuple[str, str], counts: SetCounts
) -> Iterator[Pair]:
    """Read the sentence pairs of a table whose columns have names: csv, jsonl or parquet.

    Args:
        text: The settings of the text, with its format, its file and its columns.
        stream: The bytes of the file.
        languages: The codes of source and target, after which columns may be named.
        counts: Statistics to which pairs with a null are added as dropped.

    Raises:
        UserError: The file is not valid, or lacks a column, or a value is not text.
    """
    [file] = text.files
    limit = score_limit(text, counts)
    choice = PairChoice(text.named_columns, languages, counts, limit)
    match text.format:
        case "jsonl":
            return read_json_lines(stream, file.name, choice)
        case "parquet":
            return read_parquet(stream, file.name, choice)
        case _:
            return read_csv(stream, file.name, text.columns, languages, limit)


def read_csv(
    stream: BinaryIO,
    name: str,
    columns: tuple[int | str, int | str] | None,
    languages: tuple[str, str],
    limit: ScoreLimit | None = None,
) -> Iterator[Pair]:
    """Read the sentence pairs of a .csv file.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        columns: The source and the target column: their numbers, from 1, or their names in the
            first row. None for those that the first row names by the languages.
        languages: The codes of source and target.
        limit: Drops pairs by a column of scores; None to keep all pairs.

    Raises:
        UserError: A row lacks a column, is not valid CSV, or has a score that is not a number.
    """
    rows = csv_rows(stream, name)
    if columns is None:
        header: tuple[int, list[str]] = next(rows, (1, []))
        line_number, cells = header
        # Names of columns count without white space around them: `de, en`.
        names = [cell.strip() for cell in cells]
        columns = columns_by_language(names, languages, f"{name}:{line_number}")
        rows = chain([header], rows)
    for pair in pairs_of_rows(rows, name, columns, limit):
        yield Pair(in_one_line(pair.source), in_one_line(pair.target))


def csv_rows(stream: BinaryIO, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a .csv file, each with the number of its first line.

    Cells may be quoted, and then contain separators and line breaks. Blank lines are skipped. Cells
    are separated by the character that gives the first line most cells: a comma, a semicolon or a
    tab.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.

    Raises:
        UserError: The file is not UTF-8, or a quotation mark is missing or in the wrong place.
    """
    lines = read_lines(stream, name)
    first_line = next(lines, None)
    if first_line is None:
        return
    csv.field_size_limit(_MAX_CELL_CHARACTERS)
    lines_with_ends = (f"{line}\n" for line in chain([first_line], lines))
    reader = csv.reader(lines_with_ends, delimiter=_delimiter(first_line), strict=True)
    while True:
        line_number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{name}:{line_number}: {_csv_problem(error)}") from None
        if row is None:
            return
        if row:
            yield line_number, row


def _csv_problem(error: csv.Error) -> str:
    r"""Return what is wrong with a row of a .csv file, and what to do.

    Args:
        error: The error of Python's reader, which takes a \r outside of quotation marks for a line
            end.
    """
    if "new-line character" in str(error):
        return (
            "not valid CSV: the row contains \\r, a carriage return. Write quotation marks around "
            "its cell, or remove it. If all lines end in \\r, set line_ends: cr"
        )
    return (
        f"not valid CSV: {error}. A quotation mark inside a quoted cell is doubled: "
        '"He said ""yes"""'
    )


def _delimiter(first_line: str) -> str:
    """Return the character that separates the cells of a .csv file, by its first line."""
    cell_counts = dict[str, int]()
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([f"{first_line}\n"], delimiter=delimiter, strict=True), [])
        except csv.Error:
            # With this separator, a quotation mark is in the wrong place; or a quoted cell of the
            # first line continues in the next one.
            continue
        cell_counts[delimiter] = len(cells)
    # Of several characters with as many cells, `max` returns the first one.
    return max(cell_counts, key=cell_counts.__getitem__, default=_DELIMITERS[0])
