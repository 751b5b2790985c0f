"""Read the columns of a table, and tell which of them contain sentences in a language.

table_columns.py chooses the source and the target column from them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

from bleuprint.config.corpus_files import File
from bleuprint.config.text_formats import TABLES_OF_RECORDS, Format
from bleuprint.corpus.download.download import open_file
from bleuprint.corpus.download.fetch import downloads_of_environment
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.download.formats.parquet import parquet_records
from bleuprint.corpus.download.formats.records import (
    NumberedRecord,
    Record,
    column_names,
    in_one_line,
    json_records,
    record_with_columns,
    value_of,
)
from bleuprint.corpus.download.formats.tables import csv_rows
from bleuprint.rules.language_id import likelihood
from bleuprint.runtime.errors import UserError

# The number of lines at the beginning of a table that are read to choose its columns.
_LINES_READ = 1000
# A property of cells, such as containing letters, counts for a column if more than this share of
# its cells have the property.
_MAJORITY = 0.5
# The number of cells whose language is identified, joined into one text.
_IDENTIFIED_CELLS = 200
# A column contains categories, not sentences, if the number of different cells is below this share
# of all cells. The rule applies from this number of cells on; fewer cells may repeat by chance.
_MIN_DIFFERENT_SHARE = 0.1
_MIN_CELLS_TO_COUNT = 20
# The smallest likelihood of a language for the text of a column, as a share of the likelihood of
# the likeliest language.
_MIN_RELATIVE_LIKELIHOOD = 0.1
# The number of characters of a cell that a message shows.
SHOWN_CHARACTERS = 30
# A cell that is a key, not text: an identifier that joins several words (app.title, saveButton,
# item_2), or a short code (AE, DE-AT, 12).
_KEY = re.compile(
    r"(?=\S*([A-Za-z0-9][._:/#\\-][A-Za-z0-9_]|[a-z][A-Z]|_|[0-9]))[!-~]+|[A-Z0-9]{1,3}"
)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        number: The number of the column, counted from 1.
        cells: The cells of the column in the first lines, the first line included, which may be a
            header.
    """

    number: int
    cells: list[str]

    @property
    def name(self) -> str:
        """The cell in the first line."""
        return self.cells[0]

    @property
    def stripped_name(self) -> str:
        """The cell in the first line, without white space around it."""
        return self.name.strip()

    def problem(self, has_header: bool) -> str:
        """Return why a column of a table does not look like sentences in a language.

        Numbers, keys such as `app.title`, and categories such as `news` are not sentences.

        Args:
            has_header: Whether the first cell is a column name, which is not judged.

        Returns:
            The end of a message that begins with "column 3"; an empty string if there is no
            problem.
        """
        all_cells = self.cells[1:] if has_header else self.cells
        cells = [cell for cell in all_cells if cell]
        cells_with_letters = [cell for cell in cells if _has_letter(cell)]
        if len(cells_with_letters) <= _MAJORITY * len(all_cells):
            return "has hardly any words"
        keys = [cell for cell in cells if _KEY.fullmatch(cell)]
        if len(keys) > _MAJORITY * len(cells):
            return f"contains keys such as {keys[0][:SHOWN_CHARACTERS]!r}"
        different_cells = set(cells)
        # Categories such as `news` repeat in many cells. A short table is not judged by this, since
        # a few sentences may repeat by chance.
        is_long_enough = len(cells) >= _MIN_CELLS_TO_COUNT
        if is_long_enough and len(different_cells) < _MIN_DIFFERENT_SHARE * len(cells):
            return f"contains few different values, such as {cells[0][:SHOWN_CHARACTERS]!r}"
        return ""

    def is_likely(self, language: str) -> bool:
        """Return whether the text of the column may be in a language, such as `de`.

        The answer is no only if another language is at least ten times as likely.
        """
        # The first cell is skipped: it may be a column name.
        text = " ".join(self.cells[1 : _IDENTIFIED_CELLS + 1])
        return likelihood(text, language) >= _MIN_RELATIVE_LIKELIHOOD


def _has_letter(cell: str) -> bool:
    """Return whether a cell contains a letter."""
    return any(character.isalpha() for character in cell)


def read_columns(file: File, text_format: Format) -> list[Column]:
    """Read the columns of a table from its first lines.

    The shortest line determines the number of columns. Further cells of other lines, which may be
    notes, are ignored.

    Args:
        file: The file.
        text_format: Its format: tsv, csv, jsonl or parquet. In the latter two, the first cell of
            each column is its name.

    Raises:
        UserError: The file is empty, or it has only one column.
    """
    with open_file(file, downloads_of_environment()) as stream:
        rows = _read_rows(stream, file.name, text_format)
    if not rows:
        raise UserError(f"{file.name}: the file is empty")
    column_count = min(len(row) for row in rows)
    columns = []
    for index in range(column_count):
        cells = [row[index] for row in rows]
        columns.append(Column(index + 1, cells))  # Columns are numbered from 1.
    return columns


def _read_rows(stream: BinaryIO, name: str, text_format: Format) -> list[list[str]]:
    """Read the first rows of a table.

    Args:
        stream: The bytes of the file.
        name: The name of the file in messages.
        text_format: The format of the table.

    Returns:
        The cells of each row. The first row may contain the names of the columns; it always does in
        jsonl and parquet.

    Raises:
        UserError: A row has only one column.
    """
    if text_format in TABLES_OF_RECORDS:
        records = json_records(stream, name)
        if text_format == "parquet":
            records = parquet_records(stream, name)
        return _rows_of_records(list(islice(records, _LINES_READ)), name)
    if text_format == "csv":
        numbered_rows = csv_rows(stream, name)
        separator = "comma, semicolon or tab"
    else:
        lines = enumerate(read_lines(stream, name), 1)
        numbered_rows = ((number, line.split("\t")) for number, line in lines)
        separator = "tab"
    rows = []
    for line_number, cells in islice(numbered_rows, _LINES_READ):
        if len(cells) < 2:
            raise UserError(
                f"{name}:{line_number}: the line has no {separator}. A .{text_format} file "
                f"contains one sentence pair per line, with a {separator} between source and target"
            )
        rows.append(cells)
    return rows


def _rows_of_records(records: Sequence[NumberedRecord], name: str) -> list[list[str]]:
    """Return records as rows of a table, whose first row contains the names of the columns.

    Values that are not text, such as numbers, become empty cells.

    Args:
        records: The first records of a file.
        name: The name of the file in messages.

    Raises:
        UserError: The file has only one column.
    """
    if not records:
        return []
    header = record_with_columns(records)
    columns = column_names(header.values)
    if len(columns) < 2:
        raise UserError(
            f"{name}:{header.number}: the columns are {columns}, but source and target are needed"
        )
    rows = [columns]
    for record in records:
        rows.append([_cell(record.values, column) for column in columns])
    return rows


def _cell(record: Record, column: str) -> str:
    """Return the text of a record in a column; empty if it has no text there."""
    try:
        value = value_of(record, column)
    except KeyError:
        return ""
    return in_one_line(value) if isinstance(value, str) else ""
