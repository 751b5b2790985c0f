"""A table of text, as Markdown and LaTeX; terminal.py prints it, grid.html.j2 makes it HTML."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Self

import pandas as pd

from bleuprint.runtime.foreign_text import without_controls
from bleuprint.runtime.html import markdown_text

# The text of an empty cell.
NONE = "–"
GROUP = "group"


class Number(str):
    """The text of a number; `value` sorts it in HTML, None comes last."""

    value: float | None

    def __new__(cls, text: object, value: float | None) -> Self:
        number = super().__new__(cls, text)
        number.value = value
        return number

    @classmethod
    def of(cls, value: float, form: Callable[[float], str]) -> Self:
        """The number in a form, or an empty cell if it is missing."""
        return cls(NONE, None) if pd.isna(value) else cls(form(value), float(value))


@dataclass(frozen=True)
class Column:
    """A column's head: `label`, in LaTeX below `group`, which adjacent columns share."""

    label: str
    group: str = ""
    left: bool = False


@dataclass(frozen=True)
class Row:
    """`best` are the columns in which no row that is scored here is better.

    `kind` is baseline, outside, published, GROUP (a row that names those below it) or empty.
    """

    cells: tuple[str, ...]
    kind: str = ""
    best: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Grid:
    """A table of text, ready to be rendered."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def texts(self) -> list[int]:
        """The places of the columns of text."""
        return [place for place, column in enumerate(self.columns) if column.left]


def grid(texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """A grid with columns of text, then columns of numbers, named by their heads."""
    columns = [*(Column(head, left=True) for head in texts), *map(Column, numbers)]
    return Grid(tuple(columns), tuple(Row(tuple(cells)) for cells in rows))


def filled_columns(grid: Grid) -> Grid:
    """The grid without the columns, but the first, in which no row has a value."""
    return only(
        grid, lambda at: not at or any(row.cells[at] not in ("", NONE) for row in grid.rows)
    )


def only(grid: Grid, shown: Callable[[int], bool]) -> Grid:
    """The columns whose places are `shown`."""
    places = [place for place in range(len(grid.columns)) if shown(place)]
    rows = [
        replace(
            row,
            cells=tuple(row.cells[place] for place in places),
            best=frozenset(new for new, place in enumerate(places) if place in row.best),
        )
        for row in grid.rows
    ]
    return Grid(tuple(grid.columns[place] for place in places), tuple(rows))


def span(values: Sequence[float]) -> str:
    """The lowest to the highest number, or the only one."""
    low, high = (f"{value:.1f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def markdown(grid: Grid) -> str:
    """The grid as a Markdown table, aligned for reading as text."""
    grid = filled_columns(grid)
    head = [_markdown_cell(column.label) for column in grid.columns]
    rows = [_marked(row, list(map(_markdown_cell, row.cells)), "**", "**") for row in grid.rows]
    lines = [head, *rows]
    columns = []
    for column, cells in zip(grid.columns, zip(*lines, strict=True), strict=True):
        width = max(3, *map(len, cells))
        rule = "-" * (width - 1)
        head, *texts = (cell.ljust(width) if column.left else cell.rjust(width) for cell in cells)
        columns.append([head, f":{rule}" if column.left else f"{rule}:", *texts])
    return "".join(f"| {' | '.join(line)} |\n" for line in zip(*columns, strict=True))


def bullets(texts: Iterable[str]) -> str:
    """The texts as a Markdown list."""
    return "".join(f"- {_BLOCK.sub(_escaped, _markdown_text(text))}\n" for text in texts)


def latex(grid: Grid, caption: str) -> str:
    """The grid as a LaTeX table, at most as wide as the line; needs booktabs and graphicx."""
    grid = filled_columns(grid)
    layout = "".join("l" if column.left else "r" for column in grid.columns)
    heads, rules = [], []
    for group, of_group in groupby(range(len(grid.columns)), lambda at: grid.columns[at].group):
        first, *others = of_group
        if group:
            heads.append(f"\\multicolumn{{{1 + len(others)}}}{{c}}{{{tex_text(group)}}}")
            rules.append(f"\\cmidrule(lr){{{first + 1}-{first + 1 + len(others)}}}")
        else:
            heads += ["", *("" for _ in others)]
    body = []
    for above, row in zip((None, *grid.rows), grid.rows, strict=False):
        if above is not None and above.kind == "published" != row.kind:
            body.append("\\midrule")
        body.append(_tex_line(_marked(row, list(map(tex_text, row.cells)), "\\textbf{", "}")))
    return "\n".join(
        [
            *("\\begin{table}", "\\centering", f"\\caption{{{tex_text(caption)}}}"),
            "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
            *(f"\\begin{{tabular}}{{{layout}}}", "\\toprule", _tex_line(heads), " ".join(rules)),
            *(_tex_line([tex_text(column.label) for column in grid.columns]), "\\midrule"),
            *(*body, "\\bottomrule", "\\end{tabular}}", "\\end{table}", ""),
        ]
    )


# What begins a heading, a quotation or another list at the start of a text.
_BLOCK = re.compile(r"^(?:[#>+=-]|\d+(?=[.)]))")


def _escaped(begin: re.Match[str]) -> str:
    """The start of a text that Markdown would take for the start of a block."""
    text = begin[0]
    return f"{text}\\" if text.isdigit() else f"\\{text}"


def _markdown_text(text: str) -> str:
    """`text` in Markdown that shows it as it is; < as committed reports have it."""
    return markdown_text(text).replace("\\<", "&lt;")


def _markdown_cell(text: str) -> str:
    """A cell of a table; numbers hold nothing that others wrote, and keep their brackets."""
    shown = text.replace("<", "&lt;") if isinstance(text, Number) else _markdown_text(text)
    return shown.replace("|", "\\|")


def _marked(row: Row, cells: Sequence[str], before: str, behind: str) -> list[str]:
    return [
        f"{before}{cell}{behind}" if index in row.best else cell for index, cell in enumerate(cells)
    ]


def _tex_line(cells: Sequence[str]) -> str:
    """A line of a tabular; LaTeX takes [ or * at its start for an argument of the one above."""
    return f"{'{}' if cells[0].startswith(('[', '*')) else ''}{' & '.join(cells)} \\\\"


_TEX = str.maketrans(
    {
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$", "≥": r"$\geq$", "–": "--"},
        **{"†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$"},
        **{character: f"\\{character}" for character in "{}&%$#_"},
    }
)


def tex_text(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return without_controls(text).translate(_TEX)
