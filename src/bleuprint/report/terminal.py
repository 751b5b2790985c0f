"""Tables and lines on a terminal, or in a file, as wide as the terminal."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile, zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bleuprint.report.table import GROUP, Cell, Column, Row, Table
from bleuprint.runtime.foreign_text import print_escaped
from bleuprint.runtime.streams import printable

# Of a column of numbers, whose head may take several lines.
_WIDEST = 24


def show(parts: Iterable[str | Table]) -> None:
    """Print lines and tables; without color unless on a terminal."""
    console = _console()
    for part in parts:
        if isinstance(part, str):
            print_escaped(part)
        else:
            console.print(*_tables(part), sep="\n", soft_wrap=True)


def height(parts: Iterable[str | Table]) -> int:
    """How many lines `show` prints."""
    lines = 0
    for part in parts:
        lines += part.count("\n") + 1 if isinstance(part, str) else len(list(_tables(part)))
    return lines


def wrapped(text: str) -> str:
    """A sentence or two in lines as wide as the terminal, none within a word."""
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _console() -> Console:
    return Console(width=_width(), highlight=False, emoji=False, markup=False)


def _tables(table: Table) -> Iterator[Text]:
    """Yield the lines of as many tables as are needed for the width, an empty one above each.

    Each begins with the columns of text on the left.
    """
    table = _shown(table.without_empty_columns())
    leading = list(takewhile(lambda column: column.is_text, table.columns))
    widths = {column: _column_width(table, column) for column in table.columns}
    part: list[Column] = []
    for column in table.columns[len(leading) :]:
        line = [*leading, *part, column]
        if part and _line_width(line, widths) > _width():
            yield from _table(table, leading, part, widths)
            part = []
        part.append(column)
    yield from _table(table, leading, part, widths)


def _shown(table: Table) -> Table:
    """Return the table as a terminal may print it, control characters escaped."""
    columns = [replace(column, label=printable(column.label)) for column in table.columns]
    rows = []
    for row in table.rows:
        cells = {}
        for column, printed in zip(table.columns, columns, strict=True):
            cell = row.cell(column)
            cells[printed] = replace(cell, text=printable(cell.text))
        rows.append(replace(row, cells=cells))
    return Table(columns, rows)


def _column_width(table: Table, column: Column) -> int:
    """Return the width of the head and the cells, but long texts take several lines."""
    texts = [row.cell(column).text for row in table.rows if row.kind != GROUP]
    widest = max((_width() - 4) // 3, 20) if column.is_text else _WIDEST
    return min(max(map(cell_len, [column.label, *texts])), widest)


def _line_width(columns: Sequence[Column], widths: Mapping[Column, int]) -> int:
    """Return the width of a line; two spaces are between columns."""
    return sum(widths[column] + 2 for column in columns) - 2


def _table(
    table: Table, leading: Sequence[Column], numbers: Sequence[Column], widths: Mapping[Column, int]
) -> Iterator[Text]:
    """Yield heads, a rule, and the rows with a number in it, each group's after its name."""
    columns = [*leading, *numbers]
    heads = Row({column: Cell(column.label) for column in columns})
    yield Text()
    yield from _row_lines(heads, columns, widths, "bold")
    yield Text("─" * _line_width(columns, widths))
    group = ""
    for row in table.rows:
        if row.kind == GROUP:
            group = row.cell(columns[0]).text
        elif row.has_value(numbers or leading):
            if group:
                yield Text(group, "bold")
            group = ""
            yield from _row_lines(row, columns, widths, "dim" if row.is_muted else "")


def _row_lines(
    row: Row, columns: Sequence[Column], widths: Mapping[Column, int], style: str
) -> Iterator[Text]:
    """Yield the lines of a row: several where a text is wider than its column."""
    folded = [_folded(row.cell(column).text, widths[column]) for column in columns]
    for texts in zip_longest(*folded, fillvalue=""):
        cells = []
        for column, text in zip(columns, texts, strict=True):
            cell = Text(text, "bold" if row.cell(column).is_best else "")
            cell.align("left" if column.is_text else "right", widths[column])
            cells.append(cell)
        line = Text("  ").join(cells)
        line.stylize(style)
        yield line


def _folded(text: str, width: int) -> list[str]:
    """Return the lines of a text that is perhaps wider than its column."""
    if cell_len(text) <= width:
        return [text]
    lines = Text(text).wrap(_console(), width, overflow="fold")
    return [line.plain.rstrip() for line in lines]
