"""Prints tables as Markdown and as LaTeX.

terminal.py prints them on a terminal, and page/templates/table.html.j2 shows them as HTML.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from bleuprint.report.table import Cell, Column, Table
from bleuprint.runtime.foreign_text import remove_controls
from bleuprint.runtime.html import escape_markdown

# What begins a heading, a quotation or another list in Markdown, at the start of a list item.
_BLOCK_START = re.compile(r"^(?:[#>+=-]|\d+(?=[.)]))")
# Markdown requires three characters for the rule below the head of a column: `--:`.
_MIN_WIDTH = 3
# The characters that have a meaning in LaTeX, or that its fonts lack, and what prints them.
_TEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "≥": r"$\geq$",
    "–": "--",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
}
_TEX_TABLE = str.maketrans(_TEX_ESCAPES)


def markdown(table: Table) -> str:
    """Return a table in Markdown, aligned so that it can be read as text.

    Args:
        table: The table; its empty columns are not printed.
    """
    table = table.without_empty_columns()
    printed_columns = []
    for column in table.columns:
        head = _markdown_text(column.label).replace("|", "\\|")
        cells = [_markdown_cell(row.cell(column), column) for row in table.rows]
        printed_columns.append(_align(head, cells, column.is_text))
    lines = zip(*printed_columns, strict=True)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def bullets(texts: Iterable[str]) -> str:
    """Return texts as a Markdown list.

    Args:
        texts: The items.
    """
    items = []
    for text in texts:
        item = _BLOCK_START.sub(_escape_block_start, _markdown_text(text))
        items.append(f"- {item}\n")
    return "".join(items)


def _escape_block_start(start: re.Match[str]) -> str:
    """Escape the start of a list item that Markdown would take for the start of another block."""
    text = start[0]
    # Of a numbered list, the point after the number is escaped: 1\. and not \1.
    return f"{text}\\" if text.isdigit() else f"\\{text}"


def _markdown_text(text: str) -> str:
    """Return Markdown that shows a text unchanged; < is an entity, as in all committed reports."""
    return escape_markdown(text).replace("\\<", "&lt;")


def _markdown_cell(cell: Cell, column: Column) -> str:
    """Return the Markdown of a cell.

    Only texts are escaped: numbers contain nothing that others wrote, and escaped brackets would
    be hard to read.
    """
    text = _markdown_text(cell.text) if column.is_text else cell.text.replace("<", "&lt;")
    text = text.replace("|", "\\|")
    return f"**{text}**" if cell.is_best else text


def _align(head: str, cells: Sequence[str], is_text: bool) -> list[str]:
    """Return the head, the rule and the cells of a column, padded to the same width."""
    width = max(_MIN_WIDTH, len(head), *map(len, cells))
    dashes = "-" * (width - 1)
    rule = f":{dashes}" if is_text else f"{dashes}:"
    pad = str.ljust if is_text else str.rjust
    padded_cells = [pad(cell, width) for cell in cells]
    return [pad(head, width), rule, *padded_cells]


def latex(table: Table, caption: str) -> str:
    """Return a table for LaTeX, at most as wide as the line; it needs booktabs and graphicx.

    Args:
        table: The table; its empty columns are not printed.
        caption: The caption.
    """
    table = table.without_empty_columns()
    alignments = "".join("l" if column.is_text else "r" for column in table.columns)
    group_heads, group_rules = _latex_groups(table.columns)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{tex_text(caption)}}}",
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{alignments}}}",
        "\\toprule",
        _latex_line(group_heads),
        " ".join(group_rules),
        _latex_line([tex_text(column.label) for column in table.columns]),
        "\\midrule",
    ]
    is_after_muted_row = False
    for row in table.rows:
        # A rule separates published numbers from the systems below them.
        if is_after_muted_row and not row.is_muted:
            lines.append("\\midrule")
        lines.append(_latex_line([_latex_cell(row.cell(column)) for column in table.columns]))
        is_after_muted_row = row.is_muted
    lines += ["\\bottomrule", "\\end{tabular}}", "\\end{table}", ""]
    return "\n".join(lines)


def tex_text(text: str) -> str:
    """Return a text with LaTeX's special characters escaped, and without control characters."""
    return remove_controls(text).translate(_TEX_TABLE)


def _latex_groups(columns: Sequence[Column]) -> tuple[list[str], list[str]]:
    """Return the cells above the heads that name groups of columns, and the rules below them."""
    heads = []
    rules = []
    first_number = 1  # LaTeX counts columns from 1.
    for group, members in groupby(columns, lambda column: column.group):
        size = len(list(members))
        if group:
            last_number = first_number + size - 1
            heads.append(f"\\multicolumn{{{size}}}{{c}}{{{tex_text(group)}}}")
            rules.append(f"\\cmidrule(lr){{{first_number}-{last_number}}}")
        else:
            heads += [""] * size
        first_number += size
    return heads, rules


def _latex_cell(cell: Cell) -> str:
    text = tex_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.is_best else text


def _latex_line(cells: Sequence[str]) -> str:
    """Return a line of a LaTeX table."""
    # LaTeX takes [ or * at the start of a line for an argument of the line above.
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{start}{' & '.join(cells)} \\\\"
