"""Tables and lines on a terminal, or in a file: rich's, as wide as the terminal."""

import shutil
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bleuprint.report.grid import Grid, groups


def show(parts: Iterable[str | Grid]) -> None:
    """Print lines and tables; without color unless on a terminal."""
    width = shutil.get_terminal_size((120, 24)).columns
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    for part in parts:
        if isinstance(part, str):
            print(part, flush=True)
            continue
        for table in _tables(part, console):
            console.print()
            console.print(table)


def _tables(grid: Grid, console: Console) -> Iterator[Table]:
    """The grid in as many tables as it needs for the width.

    Columns outside any group begin every table. The columns of a group are kept together if they
    fit, and so is a column with the one that follows it; those of two groups share a table only if
    it has all of both.
    """
    leading = [place for place, column in enumerate(grid.columns) if not column.group]
    blocks = [leading]

    def fits(places: list[int]) -> bool:
        unlimited = console.options.update(max_width=10_000)
        table = _table(grid, places)
        return Measurement.get(console, unlimited, table).maximum <= console.width

    divided = False
    for group, places in groups(grid.columns):
        # a column with those that follow it, if both fit; all of the group, if it does
        pieces: list[list[int]] = []
        for place in places if group else ():
            if grid.columns[place].follows and fits([*leading, *pieces[-1], place]):
                pieces[-1].append(place)
            else:
                pieces.append([place])
        if group and fits([*leading, *places]):
            pieces = [places]
        for number, piece in enumerate(pieces):
            # a table that has a part of a group has no other group
            begins = number == 0 and (divided or len(pieces) > 1)
            if blocks[-1] != leading and (begins or not fits([*blocks[-1], *piece])):
                blocks.append(leading)
            blocks[-1] = [*blocks[-1], *piece]
        divided = len(pieces) > 1
    for block in blocks:
        yield _table(grid, block)


def _table(grid: Grid, places: list[int]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        collapse_padding=True,
    )
    columns = [grid.columns[place] for place in places]
    grouped = any(column.group for column in columns)
    for above, column in zip((None, *columns), columns, strict=False):
        # a group's name is above its first column only
        group = "" if above is not None and above.group == column.group else column.group
        head = f"{group}\n{column.label}" if grouped else column.label
        table.add_column(head, justify="left" if column.left else "right", overflow="fold")
    for row in grid.rows:
        cells = [Text(row.cells[place], "bold" if place in row.best else "") for place in places]
        table.add_row(*cells, style="dim" if row.kind == "published" else None)
    return table
