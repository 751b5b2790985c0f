"""Tables of report/grid.py below each other in one, as the terminal and the page show them."""

from collections.abc import Mapping
from dataclasses import replace

from bleuprint.report.grid import GROUP, NONE, Grid, Number, Row, filled_columns, only


def stacked(
    grids: Mapping[str, Grid], beside: Mapping[str, Mapping[str, str]] | None = None
) -> Grid:
    """The rows of all tables, each table's after one with its name and what is `beside` it.

    Columns of one label become one. What is empty is left out: columns, and rows without a number.
    """
    columns = {column.label: column for grid in grids.values() for column in grid.columns}
    rows = list[Row]()
    for name, grid in grids.items():
        labels, of_grid = [column.label for column in grid.columns], list[Row]()
        for row in grid.rows:
            cells = dict(zip(labels, row.cells, strict=True))
            if any(cell not in ("", NONE) for at, cell in cells.items() if not columns[at].left):
                best = {labels[place] for place in row.best}
                places = frozenset(place for place, label in enumerate(columns) if label in best)
                texts = tuple(cells.get(label, Number(NONE, None)) for label in columns)
                of_grid.append(Row(texts, row.kind, places))
        if of_grid:
            of_name = {labels[0]: name, **(beside or {}).get(name, {})}
            texts = tuple(of_name.get(label, "") for label in columns)
            rows += [Row(texts, GROUP, frozenset({0})), *of_grid]
    return filled_columns(Grid(tuple(columns.values()), tuple(rows)))


def parted(grid: Grid, *heads: str) -> dict[str, Grid]:
    """The rows by their texts in the columns `heads`, which are left out."""
    parts = dict[str, list[Row]]()
    named = [place for place, column in enumerate(grid.columns) if column.label in heads]
    for row in grid.rows:
        parts.setdefault(", ".join(row.cells[place] for place in named), []).append(row)
    return {
        name: only(replace(grid, rows=tuple(rows)), lambda at: at not in named)
        for name, rows in parts.items()
    }
