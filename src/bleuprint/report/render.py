"""A table as Markdown and LaTeX; terminal.py prints it, table.html.j2 of the page is its HTML."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from bleuprint.report.table import Cell, Column, Table
from bleuprint.runtime.foreign_text import remove_controls
from bleuprint.runtime.html import escape_markdown

# Markdown takes these for a heading, a quotation or another list at the start of a text.
_BLOCK = re.compile(r"^(?:[#>+=-]|\d+(?=[.)]))")
# The narrowest column, as wide as its rule in Markdown has to be.
_NARROWEST = 3
_TEX = {
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
_TEX_TABLE = str.maketrans(_TEX)


def markdown(table: Table) -> str:
    """Return a table in Markdown, aligned so that it can be read as text."""
    table = table.without_empty_columns()
    printed_columns = []
    for column in table.columns:
        texts = [_markdown_text(column.label).replace("|", "\\|")]
        texts += [_markdown_cell(row.cell(column), column) for row in table.rows]
        printed_columns.append(_aligned(texts, column))
    lines = zip(*printed_columns, strict=True)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def bullets(texts: Iterable[str]) -> str:
    """Return texts as a Markdown list."""
    items = (_BLOCK.sub(_escaped, _markdown_text(text)) for text in texts)
    return "".join(f"- {item}\n" for item in items)


def latex(table: Table, caption: str) -> str:
    """Return a table for LaTeX, at most as wide as the line; it needs booktabs and graphicx."""
    table = table.without_empty_columns()
    layout = "".join("l" if column.is_text else "r" for column in table.columns)
    heads, rules = _latex_groups(table.columns)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{tex_text(caption)}}}",
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{layout}}}",
        "\\toprule",
        _latex_line(heads),
        " ".join(rules),
        _latex_line([tex_text(column.label) for column in table.columns]),
        "\\midrule",
    ]
    is_after_muted = False
    for row in table.rows:
        if is_after_muted and not row.is_muted:
            lines.append("\\midrule")
        lines.append(_latex_line([_latex_cell(row.cell(column)) for column in table.columns]))
        is_after_muted = row.is_muted
    lines += ["\\bottomrule", "\\end{tabular}}", "\\end{table}", ""]
    return "\n".join(lines)


def tex_text(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return remove_controls(text).translate(_TEX_TABLE)


def _escaped(start: re.Match[str]) -> str:
    """Escape the start of a text that Markdown would take for the start of a block."""
    text = start[0]
    return f"{text}\\" if text.isdigit() else f"\\{text}"


def _markdown_text(text: str) -> str:
    """Return Markdown that shows a text as it is; < is written as in committed reports."""
    return escape_markdown(text).replace("\\<", "&lt;")


def _markdown_cell(cell: Cell, column: Column) -> str:
    """Numbers contain nothing that others wrote, and their brackets stay."""
    shown = _markdown_text(cell.text) if column.is_text else cell.text.replace("<", "&lt;")
    shown = shown.replace("|", "\\|")
    return f"**{shown}**" if cell.is_best else shown


def _aligned(texts: Sequence[str], column: Column) -> list[str]:
    """Return the head, the rule and the cells of a column, all of one width."""
    width = max(_NARROWEST, *map(len, texts))
    dashes = "-" * (width - 1)
    if column.is_text:
        head, *cells = (text.ljust(width) for text in texts)
        return [head, f":{dashes}", *cells]
    head, *cells = (text.rjust(width) for text in texts)
    return [head, f"{dashes}:", *cells]


def _latex_groups(columns: Sequence[Column]) -> tuple[list[str], list[str]]:
    """Return the cells above the heads that name groups of columns, and the rules below them."""
    heads = []
    rules = []
    number = 0
    for group, members in groupby(columns, lambda column: column.group):
        size = len(list(members))
        if group:
            heads.append(f"\\multicolumn{{{size}}}{{c}}{{{tex_text(group)}}}")
            rules.append(f"\\cmidrule(lr){{{number + 1}-{number + size}}}")
        else:
            heads += [""] * size
        number += size
    return heads, rules


def _latex_cell(cell: Cell) -> str:
    text = tex_text(cell.text)
    return f"\\textbf{{{text}}}" if cell.is_best else text


def _latex_line(cells: Sequence[str]) -> str:
    """LaTeX takes [ or * at the start of a line for an argument of the line above."""
    start = "{}" if cells[0].startswith(("[", "*")) else ""
    return f"{start}{' & '.join(cells)} \\\\"
