"""Tables and lines on a terminal, or in a file: rich's, as wide as there is room."""

import shutil
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from bleuprint.report.grid import Grid, groups

# For what is not UTF-8: a user's C locale, a log of a cluster.
_ASCII = str.maketrans({"–": "-", "±": "+-", "†": "*", "‡": "**", "…": "..."})


def show(parts: Iterable[str | Grid]) -> None:
    """Print lines and tables; without colour where nobody watches, in ASCII where need be."""
    width = shutil.get_terminal_size((120, 24)).columns
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    for part in parts:
        if isinstance(part, str):
            print(_encoded(part, console), flush=True)
            continue
        for table in _tables(part, console):
            console.print()
            console.print(table)


def _tables(grid: Grid, console: Console) -> Iterator[Table]:
    """The grid in as many tables as it needs to fit.

    Columns outside any group lead every one; a group is kept together where it fits, and what
    follows a column beside it.
    """
    leading = [index for index, column in enumerate(grid.columns) if not column.group]
    blocks = [leading]

    def fits(indices: list[int]) -> bool:
        made = _table(grid, indices, console)
        unlimited = console.options.update(max_width=10_000)
        return Measurement.get(console, unlimited, made).maximum <= console.width

    for group, start, end in groups(grid.columns):
        for index in range(start, end) if group else ():
            wanted = list(range(start, end)) if index == start else _followed(grid, index, end)
            beside = grid.columns[index].follows and fits([*leading, index - 1, index])
            if blocks[-1] != leading and not beside and not fits([*blocks[-1], *wanted]):
                blocks.append(leading)
            blocks[-1] = [*blocks[-1], index]
    for block in blocks:
        yield _table(grid, block, console)


def _followed(grid: Grid, index: int, end: int) -> list[int]:
    """A column and those that are to stand beside it."""
    found = [index]
    while found[-1] + 1 < end and grid.columns[found[-1] + 1].follows:
        found.append(found[-1] + 1)
    return found


def _table(grid: Grid, indices: list[int], console: Console) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        collapse_padding=True,
    )
    columns = [grid.columns[index] for index in indices]
    for above, column in zip((None, *columns), columns, strict=False):
        # a group's name stands once, above its first column
        head = "" if above is not None and above.group == column.group else column.group
        both = f"{head}\n{column.label}" if any(one.group for one in columns) else column.label
        table.add_column(
            _encoded(both, console),
            justify="left" if column.left else "right",
            overflow="fold",
        )
    for row in grid.rows:
        styles = ["bold" if index in row.best else "" for index in indices]
        texts = [_encoded(row.cells[index], console) for index in indices]
        cells = [Text(text, style) for text, style in zip(texts, styles, strict=True)]
        table.add_row(*cells, style="dim" if row.kind == "published" else None)
    return table


def _encoded(text: str, console: Console) -> str:
    """The text in characters that the output can take."""
    if console.encoding.startswith("utf"):
        return text
    return text.translate(_ASCII).encode(console.encoding, "replace").decode(console.encoding)
