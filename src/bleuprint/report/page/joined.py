"""Tables of report/grid.py below each other in one, which is how the page shows them."""

from collections.abc import Mapping
from dataclasses import replace

from bleuprint.report.grid import NONE, Grid, Row

# The kind of a row that names those below it.
GROUP = "group"
_EMPTY = ("", NONE)


def joined(
    grids: Mapping[str, Grid], beside: Mapping[str, Mapping[str, str]] | None = None
) -> Grid:
    """The rows of all tables, each table's after one with its name and what is `beside` it.

    Columns of one label become one. What is empty is left out: columns, and rows without a number.
    """
    columns = {column.label: column for grid in grids.values() for column in grid.columns}
    rows = list[tuple[str, Mapping[str, str], frozenset[str]]]()
    for name, grid in grids.items():
        labels = [column.label for column in grid.columns]
        rows.append((GROUP, {labels[0]: name, **(beside or {}).get(name, {})}, frozenset()))
        for row in grid.rows:
            cells = dict(zip(labels, row.cells, strict=True))
            if any(cell not in _EMPTY for at, cell in cells.items() if not columns[at].left):
                rows.append((row.kind, cells, frozenset(labels[place] for place in row.best)))
    shown = [at for at in columns if any(cells.get(at, "") not in _EMPTY for _, cells, _ in rows)]
    made = (
        Row(
            tuple(cells.get(at, "" if kind == GROUP else NONE) for at in shown),
            *(kind, frozenset(place for place, at in enumerate(shown) if at in best)),
        )
        for kind, cells, best in rows
    )
    return Grid(tuple(columns[at] for at in shown), tuple(made))


def parted(grid: Grid, *heads: str) -> dict[str, Grid]:
    """The rows by their texts in the columns `heads`, which are left out."""
    columns = tuple(column for column in grid.columns if column.label not in heads)
    places = [place for place, column in enumerate(grid.columns) if column not in columns]
    parts = dict[str, list[Row]]()
    for row in grid.rows:
        cells = tuple(cell for place, cell in enumerate(row.cells) if place not in places)
        name = ", ".join(row.cells[place] for place in places)
        parts.setdefault(name, []).append(replace(row, cells=cells))
    return {name: Grid(columns, tuple(rows)) for name, rows in parts.items()}
