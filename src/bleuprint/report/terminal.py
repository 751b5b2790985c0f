"""Prints tables and lines on a terminal, or into a file, and fits them to the terminal's width."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile, zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bleuprint.report.table import TITLE_ROW, Cell, Column, Row, Table
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.streams import printable

# The widest column of numbers, in characters; a longer head takes several lines.
_MAX_NUMBER_WIDTH = 24
# Texts up to this width are not wrapped, however narrow the terminal is.
_MIN_TEXT_LIMIT = 20
_COLUMN_GAP = "  "


def show(parts: Iterable[str | Table]) -> None:
    """Print lines and tables to the standard output.

    On a terminal, parts of tables are bold or dim; in a file, they are plain text.

    Args:
        parts: The lines and tables, in order.
    """
    console = _console()
    for part in parts:
        if isinstance(part, str):
            print_escaped(part)
        else:
            console.print(*_table_lines(part), sep="\n", soft_wrap=True)


def height(parts: Iterable[str | Table]) -> int:
    """Return how many lines of the terminal some lines and tables need, without printing them.

    So a command can choose what fits on one screen.

    Args:
        parts: The lines and tables.
    """
    line_count = 0
    for part in parts:
        if isinstance(part, str):
            line_count += part.count("\n") + 1
        else:
            line_count += len(list(_table_lines(part)))
    return line_count


def wrap(text: str) -> str:
    """Break a text into lines that fit the terminal, at spaces only.

    Words stay whole, so that addresses and commands can be copied.
    """
    return textwrap.fill(
        text,
        _terminal_width(),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _console() -> Console:
    """Return a console that prints texts as they are, without finding markup in them."""
    return Console(width=_terminal_width(), highlight=False, emoji=False, markup=False)


def _table_lines(table: Table) -> Iterator[Text]:
    """Yield the lines of a table.

    If a table is wider than the terminal, its columns of numbers are split into parts, which are
    printed below each other. Each part begins with an empty line, and repeats the columns of text
    on the left of the table, such as the names of systems.
    """
    table = _escape_table(table.without_empty_columns())
    text_columns = list(takewhile(lambda column: column.is_text, table.columns))
    widths = {column: _column_width(table, column) for column in table.columns}
    # Collect columns of numbers until one more would not fit. A part has at least one, even if this
    # is too wide.
    number_columns: list[Column] = []
    for column in table.columns[len(text_columns) :]:
        columns_with_this = [*text_columns, *number_columns, column]
        is_too_wide = _line_width(columns_with_this, widths) > _terminal_width()
        if number_columns and is_too_wide:
            yield from _part_lines(table, text_columns, number_columns, widths)
            number_columns = []
        number_columns.append(column)
    yield from _part_lines(table, text_columns, number_columns, widths)


def _escape_table(table: Table) -> Table:
    """Return the table with control characters escaped.

    The names of systems and corpora may come from files that others wrote, and control characters
    in them could, for example, erase other lines of the terminal.
    """
    printable_columns = []
    for column in table.columns:
        printable_columns.append(replace(column, label=printable(column.label)))
    rows = []
    for row in table.rows:
        cells = {}
        for column, printable_column in zip(table.columns, printable_columns, strict=True):
            cell = row.cell(column)
            cells[printable_column] = replace(cell, text=printable(cell.text))
        rows.append(replace(row, cells=cells))
    return Table(printable_columns, rows)


def _column_width(table: Table, column: Column) -> int:
    """Return the width of a column in characters: the width of its widest text, up to a limit.

    Texts that are wider than the limit are wrapped. Title rows are ignored, since a title may
    extend over several columns.
    """
    texts = [row.cell(column).text for row in table.rows if row.kind != TITLE_ROW]
    # Unlike len, cell_len knows that a Chinese character, for example, is two characters wide.
    widest_text = max(map(cell_len, [column.label, *texts]))
    if not column.is_text:
        return min(widest_text, _MAX_NUMBER_WIDTH)
    # The limit lets three columns of text fit side by side, with two gaps between them.
    third_of_terminal = (_terminal_width() - 2 * len(_COLUMN_GAP)) // 3
    return min(widest_text, max(third_of_terminal, _MIN_TEXT_LIMIT))


def _line_width(columns: Sequence[Column], widths: Mapping[Column, int]) -> int:
    """Return the width in characters of a line with these columns and the gaps between them."""
    gaps = len(_COLUMN_GAP) * (len(columns) - 1)
    return sum(widths[column] for column in columns) + gaps


def _part_lines(
    table: Table,
    text_columns: Sequence[Column],
    number_columns: Sequence[Column],
    widths: Mapping[Column, int],
) -> Iterator[Text]:
    """Yield the lines of a part of a table, which shows only some of its columns of numbers.

    The lines are the heads, a rule, and the rows with a value in these columns. A title row is left
    out if no row below it remains.

    Args:
        table: The whole table.
        text_columns: The columns of text on its left, which every part shows.
        number_columns: The columns of numbers that this part shows.
        widths: The width of each column.
    """
    columns = [*text_columns, *number_columns]
    head_cells = {column: Cell(column.label) for column in columns}
    yield Text()
    yield from _row_lines(Row(head_cells), columns, widths, "bold")
    yield Text("─" * _line_width(columns, widths))
    # A title waits here until the first row below it is printed.
    pending_title = ""
    # If the table has no column of numbers, the columns of text decide which rows have a value.
    value_columns = number_columns or text_columns
    for row in table.rows:
        if row.kind == TITLE_ROW:
            pending_title = row.cell(columns[0]).text
        elif row.has_text(value_columns):
            if pending_title:
                yield Text(pending_title, "bold")
            pending_title = ""
            yield from _row_lines(row, columns, widths, "dim" if row.is_muted else "")


def _row_lines(
    row: Row, columns: Sequence[Column], widths: Mapping[Column, int], style: str
) -> Iterator[Text]:
    """Yield the lines of a table row: several lines if a text is wider than its column.

    Args:
        row: The row.
        columns: The columns to print.
        widths: The width of each column.
        style: The type of the whole row, such as `bold` or `dim`; empty for normal type.
    """
    wrapped_cells = [_wrap_cell(row.cell(column).text, widths[column]) for column in columns]
    # Each printed line consists of one line of each cell. Cells with fewer lines are blank below.
    for texts in zip_longest(*wrapped_cells, fillvalue=""):
        cells = []
        for column, text in zip(columns, texts, strict=True):
            cell = Text(text, "bold" if row.cell(column).is_bold else "")
            cell.align("left" if column.is_text else "right", widths[column])
            cells.append(cell)
        line = Text(_COLUMN_GAP).join(cells)
        line.stylize(style)
        yield line


def _wrap_cell(text: str, width: int) -> list[str]:
    """Break the text of a cell into lines of at most this width; long words are broken, too."""
    if cell_len(text) <= width:
        return [text]
    lines = Text(text).wrap(_console(), width, overflow="fold")
    return [line.plain.rstrip() for line in lines]
