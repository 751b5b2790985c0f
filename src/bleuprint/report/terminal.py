"""Tables and lines on a terminal, or in a file, as wide as the terminal."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile, zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bleuprint.report.grid import GROUP, NONE, Grid, Row, filled_columns
from bleuprint.runtime.foreign_text import write_line
from bleuprint.runtime.streams import shown

# Of a column of numbers, whose head may take several lines.
_WIDEST = 24


def show(parts: Iterable[str | Grid]) -> None:
    """Print lines and tables; without color unless on a terminal."""
    console = _console()
    for part in parts:
        if isinstance(part, str):
            write_line(part)
        else:
            console.print(*_tables(part), sep="\n", soft_wrap=True)


def height(parts: Iterable[str | Grid]) -> int:
    """How many lines `show` prints."""
    return sum(
        part.count("\n") + 1 if isinstance(part, str) else len([*_tables(part)]) for part in parts
    )


def wrapped(text: str) -> str:
    """A sentence or two in lines as wide as the terminal, none within a word."""
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _console() -> Console:
    return Console(width=_width(), highlight=False, emoji=False, markup=False)


def _tables(grid: Grid) -> Iterator[Text]:
    """The lines of as many tables as the grid needs for the width, an empty one above each.

    Each begins with the columns of text on the left.
    """
    grid = _shown(filled_columns(grid))
    columns = range(len(grid.columns))
    leading = [*takewhile(lambda at: grid.columns[at].left, columns)]
    widths = [_column_width(grid, place) for place in columns]
    table = list[int]()
    for place in columns[len(leading) :]:
        if table and sum(2 + widths[at] for at in (*leading, *table, place)) - 2 > _width():
            yield from _table(grid, leading, table, widths)
            table = []
        table.append(place)
    yield from _table(grid, leading, table, widths)


def _shown(grid: Grid) -> Grid:
    """The grid as a terminal may print it, control characters escaped."""
    columns = [replace(column, label=shown(column.label)) for column in grid.columns]
    rows = [replace(row, cells=tuple(map(shown, row.cells))) for row in grid.rows]
    return Grid(tuple(columns), tuple(rows))


def _column_width(grid: Grid, place: int) -> int:
    """That of its head and cells, but long names take several lines."""
    column = grid.columns[place]
    cells = (row.cells[place] for row in grid.rows if row.kind != GROUP)
    most = max((_width() - 4) // 3, 20) if column.left else _WIDEST
    return min(max(map(cell_len, (column.label, *cells))), most)


def _table(
    grid: Grid, leading: Sequence[int], numbers: Sequence[int], widths: Sequence[int]
) -> Iterator[Text]:
    """Heads, a rule, and the rows that have a number in it, each group's after its name."""
    places, group = [*leading, *numbers], ""

    def lines(row: Row, style: str = "") -> Iterator[Text]:
        folded = [_folded(row.cells[place], widths[place]) for place in places]
        for texts in zip_longest(*folded, fillvalue=""):
            cells = [Text(text) for text in texts]
            for cell, at in zip(cells, places, strict=True):
                cell.align("left" if grid.columns[at].left else "right", widths[at])
                cell.style = "bold" * (at in row.best)
            (line := Text("  ").join(cells)).stylize(style)
            yield line

    yield Text()
    yield from lines(Row(tuple(column.label for column in grid.columns)), "bold")
    yield Text("─" * (sum(2 + widths[at] for at in places) - 2))
    for row in grid.rows:
        if row.kind == GROUP:
            group = row.cells[0]
        elif any(row.cells[at] != NONE for at in numbers or leading):
            if group:
                yield Text(group, "bold")
            group = ""
            yield from lines(row, "dim" if row.kind == "published" else "")


def _folded(text: str, width: int) -> list[str]:
    """The lines of a cell."""
    if cell_len(text) <= width:
        return [text]
    return [line.plain.rstrip() for line in Text(text).wrap(_console(), width, overflow="fold")]
