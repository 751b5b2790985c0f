"""What the tables of version 1.0 are called today: heads, titles and marks that have new names.

Tests apply these names to the text of version 1.0, and compare the result with today's tables
character by character. Nothing here reads what today's code writes.
"""

import re

# A head of version 1.0: today's head, and the reason.
HEADS = {
    "difference": ("Δ BLEU", "sacreBLEU's paired tests speak of deltas; the metric is named"),
    "chrF2 difference": ("Δ chrF2", "as for BLEU"),
    "chrF2++ difference": ("Δ chrF2++", "as for BLEU"),
    "TER difference": ("Δ TER", "as for BLEU"),
    "COMET difference": ("Δ COMET", "as for BLEU"),
    "people agree": ("human agreement", "a noun; Kocmi et al. 2024 speak of human judgments"),
    "chrF2 people agree": ("chrF2 human agreement", "as for BLEU"),
    "COMET people agree": ("COMET human agreement", "as for BLEU"),
    "95 % interval": ("95% CI", "sacreBLEU prints 95% CI"),
    "Time": ("Training time", "says what took the time"),
    "any fault": ("any error", "translations have errors"),
    "loop": ("repetition", "machine translation speaks of repetitions"),
    "other language": ("wrong language", "it is an error"),
    "source copied": ("untranslated", "machine translation speaks of untranslated text"),
    "Pair": ("Language pair", "a pair of languages, not of sentences"),
}
# A title of a section of table.md: today's title, and the reason.
TITLES = {
    "## Rare words": (
        "## Word recall by training frequency",
        "compare-mt's word accuracy by frequency; frequent words are in the table, too",
    ),
    "## Faults that need no reference": ("## Output errors", "translations have errors"),
}
# The id of a section of the HTML report: today's id, and the reason.
ANCHORS = {"faults": ("errors", "translations have errors")}
# Text in a cell, as a pattern: today's text, and the reason.
CELLS = {
    r"^(.*) \(baseline\)$": (r"Baseline: \1", "sacreBLEU marks the baseline so"),
    r"^((?:≥ )?\d+) %$": (r"\1%", "English has no space before a percent sign"),
}


def head_of_today(head):
    """Return today's name for the head of a column in version 1.0."""
    return HEADS.get(head, (head, ""))[0]


def title_of_today(title):
    """Return today's name for the title of a section in version 1.0; other lines are unchanged."""
    return TITLES.get(title, (title, ""))[0]


def cell_of_today(cell):
    """Return the text of a cell in version 1.0 as it is written today.

    Only the first line changes: below it, the HTML report describes the system.
    """
    first_line, line_break, rest = cell.partition("\n")
    for pattern, (replacement, _) in CELLS.items():
        first_line = re.sub(pattern, replacement, first_line)
    return f"{first_line}{line_break}{rest}"


def markdown_of_today(lines):
    """Return lines of Markdown from version 1.0 with today's titles, heads and cells.

    Columns of tables become as wide as their longest cell.
    """
    renamed_lines = []
    table = []
    # The empty line at the end finishes a table that ends with the last line.
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(markdown_cells(line))
            continue
        if table:
            renamed_lines += _aligned(_renamed_table(table))
            table = []
        renamed_lines.append(title_of_today(line))
    return renamed_lines[:-1]


def markdown_cells(line):
    """Return the cells in a line of a Markdown table."""
    return [cell.strip() for cell in line.removeprefix("| ").removesuffix(" |").split(" | ")]


def _renamed_table(table):
    """Return the cells of a Markdown table with today's heads and cells.

    Args:
        table: The cells of each line: first the heads, then the dashes below them, then the rows.
    """
    heads, dashes, *rows = table
    renamed_table = [[head_of_today(head) for head in heads], dashes]
    for row in rows:
        renamed_table.append([cell_of_today(cell) for cell in row])
    return renamed_table


def _aligned(table):
    """Return the lines of a Markdown table whose columns are as wide as their longest cell.

    Args:
        table: The cells of each line: first the heads, then the dashes below them, then the rows.
            Dashes that begin with a colon align their column to the left, others to the right.
    """
    columns = []
    for head, dashes, *texts in zip(*table, strict=True):
        width = max(3, len(head), *map(len, texts))
        if dashes.startswith(":"):
            new_dashes = ":" + "-" * (width - 1)
            padded = [text.ljust(width) for text in [head, new_dashes, *texts]]
        else:
            new_dashes = "-" * (width - 1) + ":"
            padded = [text.rjust(width) for text in [head, new_dashes, *texts]]
        columns.append(padded)
    lines = []
    for cells in zip(*columns, strict=True):
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def latex_of_today(tabular):
    r"""Return a LaTeX table from version 1.0 with today's heads and cells.

    Args:
        tabular: The environment tabular. The heads are in the line before \midrule.
    """
    row_end = " \\\\"
    lines = tabular.split("\n")
    heads_number = lines.index("\\midrule") - 1
    renamed_lines = []
    for number, line in enumerate(lines):
        if not line.endswith(row_end) or number < heads_number:
            renamed_lines.append(line)
            continue
        renamed_cells = []
        for cell in line.removesuffix(row_end).split(" & "):
            text = plain(cell)
            new_text = head_of_today(text) if number == heads_number else cell_of_today(text)
            renamed_cells.append(latex(new_text))
        renamed_lines.append(" & ".join(renamed_cells) + row_end)
    return "\n".join(renamed_lines)


_LATEX = {"Δ": "$\\Delta$", "%": "\\%", "≥": "$\\geq$"}


def latex(text):
    """Return a text with the LaTeX commands for those characters that need them in these tables."""
    for character, command in _LATEX.items():
        text = text.replace(character, command)
    return text


def plain(text):
    """Return a text with characters in place of LaTeX commands: the reverse of `latex`."""
    for character, command in _LATEX.items():
        text = text.replace(command, character)
    return text
