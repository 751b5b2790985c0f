"""Tables and lines on a terminal, or in a file: rich's, as wide as the terminal."""

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bleuprint.report.grid import NONE, Column, Grid, filled_columns, groups


def show(parts: Iterable[str | Grid]) -> None:
    """Print lines and tables; without color unless on a terminal."""
    console = _console()
    for part in parts:
        print(_text(part, console), flush=True)


def height(parts: Iterable[str | Grid]) -> int:
    """How many lines `show` prints."""
    return sum(_height(part, _width()) for part in parts)


@lru_cache(maxsize=100)  # rich takes a while for a large table
def _height(part: str | Grid, width: int) -> int:  # noqa: ARG001
    return _text(part, _console()).count("\n") + 1


def wrapped(text: str) -> str:
    """A sentence or two in lines as wide as the terminal, none within a word."""
    return textwrap.fill(text, _width(), break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _console() -> Console:
    return Console(width=_width(), highlight=False, emoji=False, markup=False)


def _text(part: str | Grid, console: Console) -> str:
    """A line as it is, a table with an empty line above each of its parts."""
    if isinstance(part, str):
        return part
    grid = filled_columns(part)
    with console.capture() as captured:
        for places in _tables(grid, console):
            console.print()
            console.print(_table(grid, places))
    return captured.get().removesuffix("\n")


def _tables(grid: Grid, console: Console) -> Iterator[list[int]]:
    """The places of the columns of as many tables as the grid needs for the width.

    Columns outside any group begin every table. The columns of a group are kept together if they
    fit, and so is a column with the one that follows it; those of two groups share a table only if
    it has all of both.
    """
    leading = [place for place, column in enumerate(grid.columns) if not column.group]

    def fits(places: list[int]) -> bool:
        return _needed(grid, [*leading, *places]) <= console.width

    table, divided = list[int](), False
    for group, places in groups(grid.columns):
        # a column with those that follow it, if both fit; all of the group, if it does
        pieces = [places] if group and fits(places) else list[list[int]]()
        for place in places if group and not pieces else ():
            if grid.columns[place].follows and fits([*pieces[-1], place]):
                pieces[-1].append(place)
            else:
                pieces.append([place])
        for number, piece in enumerate(pieces):
            # a table that has a part of a group has no other group
            begins = number == 0 and (divided or len(pieces) > 1)
            if table and (begins or not fits([*table, *piece])):
                yield [*leading, *table]
                table = []
            table += piece
        divided = len(pieces) > 1
    yield [*leading, *table]


def _needed(grid: Grid, places: list[int]) -> int:
    """The width of these columns with two spaces between them."""
    columns = [grid.columns[place] for place in places]
    widths = list[int]()
    for head, most, place in zip(*_heads(columns), places, strict=True):
        cells = (row.cells[place] for row in grid.rows)
        width = max(map(cell_len, (*head.split("\n"), *cells)))
        widths.append(min(width, most or width))
    return sum(widths) + 2 * (len(widths) - 1)


def _heads(columns: Sequence[Column]) -> tuple[list[str], list[int | None]]:
    """The head of each column, and its greatest width: long names then take several lines."""
    grouped = any(column.group for column in columns)
    heads, most = list[str](), list[int | None]()
    for above, column in zip((None, *columns), columns, strict=False):
        # a group's name is above its first column only
        group = "" if above is not None and above.group == column.group else column.group
        heads.append(f"{group}\n{column.label}" if grouped else column.label)
        most.append(max(_width() // 3, 20) if above is None else None if column.left else 24)
    return heads, most


def _table(grid: Grid, places: list[int]) -> Table:
    look = {"pad_edge": False, "show_edge": False, "collapse_padding": True}
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", **look)  # type: ignore[arg-type]
    columns = [grid.columns[place] for place in places]
    for head, most, column in zip(*_heads(columns), columns, strict=True):
        table.add_column(
            head, justify="left" if column.left else "right", overflow="fold", max_width=most
        )
    of_groups = [place for place in places if grid.columns[place].group] or places
    for row in grid.rows:
        if all(row.cells[place] == NONE for place in of_groups):  # its values are in other parts
            continue
        cells = [Text(row.cells[place], "bold" if place in row.best else "") for place in places]
        table.add_row(*cells, style="dim" if row.kind == "published" else None)
    return table
