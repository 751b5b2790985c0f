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
        for places in _tables(part, console):
            console.print()
            console.print(_table(part, places))


def _tables(grid: Grid, console: Console) -> Iterator[list[int]]:
    """The places of the columns of as many tables as the grid needs for the width.

    Columns outside any group begin every table. The columns of a group are kept together if they
    fit, and so is a column with the one that follows it; those of two groups share a table only if
    it has all of both.
    """
    leading = [place for place, column in enumerate(grid.columns) if not column.group]
    unlimited = console.options.update(max_width=10_000)

    def fits(places: list[int]) -> bool:
        measured = Measurement.get(console, unlimited, _table(grid, [*leading, *places]))
        return measured.maximum <= console.width

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


def _table(grid: Grid, places: list[int]) -> Table:
    look = {"pad_edge": False, "show_edge": False, "collapse_padding": True}
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", **look)  # type: ignore[arg-type]
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
