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
_TEX_ESCAPE_TABLE = str.maketrans(_TEX_ESCAPES)


def markdown(table: Table) -> str:
    """Return a table in Markdown, with aligned columns, so that it can also be read as plain text.

    Args:
        table: The table; its empty columns are not printed.
    """
    table = table.without_empty_columns()
    columns_of_texts = []
    for column in table.columns:
        head = _markdown_text(column.label).replace("|", "\\|")
        cells = [_markdown_cell(row.cell(column), column) for row in table.rows]
        columns_of_texts.append(_align(head, cells, column.is_text))
    # Turn the columns into lines: the first line has the first text of each column, and so on.
    lines = zip(*columns_of_texts, strict=True)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def bullets(texts: Iterable[str]) -> str:
    """Return texts as a Markdown list, with one item for each text.

    Characters with a meaning in Markdown are escaped, so that readers see the texts as they are.

    Args:
        texts: The texts.
    """
    items = []
    for text in texts:
        item = _BLOCK_START.sub(_escape_block_start, _markdown_text(text))
        items.append(f"- {item}\n")
    return "".join(items)


def _escape_block_start(start: re.Match[str]) -> str:
    """Escape the start of a list item that Markdown would read as a heading or another list.

    Args:
        start: The match at the start of the item: a character such as `#`, or the number in `1.`.
    """
    text = start[0]
    if text.isdigit():
        # The number stays, and the backslash escapes the point that follows it: 1\.
        return f"{text}\\"
    return f"\\{text}"


def _markdown_text(text: str) -> str:
    """Return Markdown that shows a text unchanged, with the special characters escaped."""
    # Committed reports contain < as an entity, and must not change.
    return escape_markdown(text).replace("\\<", "&lt;")


def _markdown_cell(cell: Cell, column: Column) -> str:
    """Return the Markdown of a table cell, in bold if the cell is bold.

    Texts may contain anything, so each character with a meaning in Markdown is escaped. Numbers are
    formatted by this package. Their brackets, as in `31.1 [30.1, 33.1]`, need no escape, and the
    table stays readable as plain text.
    """
    text = _markdown_text(cell.text) if column.is_text else cell.text.replace("<", "&lt;")
    text = text.replace("|", "\\|")
    return f"**{text}**" if cell.is_bold else text


def _align(head: str, cells: Sequence[str], is_text: bool) -> list[str]:
    """Return the texts of a Markdown column, from top to bottom, padded to the same width.

    Args:
        head: The head of the column. Below it, Markdown requires a rule such as `---:`, whose colon
            stands on the side on which the column is aligned.
        cells: The cells.
        is_text: Whether the column is aligned on the left, as text is; numbers are on the right.
    """
    width = max(_MIN_WIDTH, len(head), *map(len, cells))
    dashes = "-" * (width - 1)
    rule = f":{dashes}" if is_text else f"{dashes}:"
    pad = str.ljust if is_text else str.rjust
    padded_cells = [pad(cell, width) for cell in cells]
    return [pad(head, width), rule, *padded_cells]


def latex(table: Table, caption: str) -> str:
    """Return a table in LaTeX, which shrinks the table if it is wider than a line of text.

    The document has to load the packages booktabs and graphicx.

    Args:
        table: The table; its empty columns are not printed.
        caption: The caption, as plain text.
    """
    table = table.without_empty_columns()
    alignments = "".join("l" if column.is_text else "r" for column in table.columns)
    group_heads, group_rules = _latex_groups(table.columns)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{tex_text(caption)}}}",
        # If the table is wider than a line of text, it is shrunk to this width.
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
        # Published numbers, which are muted, stand first. A rule separates them from our systems.
        if is_after_muted_row and not row.is_muted:
            lines.append("\\midrule")
        lines.append(_latex_line([_latex_cell(row.cell(column)) for column in table.columns]))
        is_after_muted_row = row.is_muted
    lines += ["\\bottomrule", "\\end{tabular}}", "\\end{table}", ""]
    return "\n".join(lines)


def tex_text(text: str) -> str:
    """Return LaTeX that shows a text unchanged, but without its control characters."""
    return remove_controls(text).translate(_TEX_ESCAPE_TABLE)


def _latex_groups(columns: Sequence[Column]) -> tuple[list[str], list[str]]:
    """Return the cells above the heads of a LaTeX table, and the rules (lines) under these cells.

    The cells name groups of columns, such as a test set with two metrics.

    Args:
        columns: The columns. Neighbors with the same group, such as a test set, get a common cell,
            which spans all of them.

    Returns:
        The cells of the line, and the rules that are drawn below the groups.
    """
    cells = []
    rules = []
    first_number = 1  # LaTeX counts columns from 1.
    for group, members in groupby(columns, lambda column: column.group):
        column_count = len(list(members))
        if group:
            last_number = first_number + column_count - 1
            cells.append(f"\\multicolumn{{{column_count}}}{{c}}{{{tex_text(group)}}}")
            rules.append(f"\\cmidrule(lr){{{first_number}-{last_number}}}")
        else:
            cells += [""] * column_count
        first_number += column_count
    return cells, rules


def _latex_cell(cell: Cell) -> str:
    text = tex_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.is_bold else text


def _latex_line(cells: Sequence[str]) -> str:
    """Return a line of a LaTeX table with these cells."""
    # The line above ends with the line break `\\`. LaTeX would read a following [ or * as an
    # argument of it, so empty braces are put between them.
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{start}{' & '.join(cells)} \\\\"
