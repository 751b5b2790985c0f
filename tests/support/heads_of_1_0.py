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
    return HEADS.get(head, (head, ""))[0]


def title_of_today(title):
    return TITLES.get(title, (title, ""))[0]


def cell_of_today(cell):
    """The text of a cell; below its first line, the HTML report describes the system."""
    first, line_break, rest = cell.partition("\n")
    for pattern, (replacement, _) in CELLS.items():
        first = re.sub(pattern, replacement, first)
    return f"{first}{line_break}{rest}"


def markdown_of_today(lines):
    """Lines of titles and tables in Markdown, with today's names; columns are as wide as needed."""
    renamed = []
    table = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append(markdown_cells(line))
            continue
        if table:
            heads, rule, *rows = table
            heads = [head_of_today(head) for head in heads]
            rows = [[cell_of_today(cell) for cell in row] for row in rows]
            renamed += aligned([heads, rule, *rows])
            table = []
        renamed.append(title_of_today(line))
    return renamed[:-1]


def markdown_cells(line):
    """The cells of a line of a table in Markdown."""
    return [cell.strip() for cell in line.removeprefix("| ").removesuffix(" |").split(" | ")]


def aligned(table):
    """The lines of a table in Markdown, from the cells of its heads, its rule and its rows."""
    heads, rule, *rows = table
    columns = []
    for place, dashes in enumerate(rule):
        cells = [heads[place], *(row[place] for row in rows)]
        width = max(3, *map(len, cells))
        if dashes.startswith(":"):
            head, *texts = [cell.ljust(width) for cell in cells]
            columns.append([head, ":" + "-" * (width - 1), *texts])
        else:
            head, *texts = [cell.rjust(width) for cell in cells]
            columns.append([head, "-" * (width - 1) + ":", *texts])
    return [f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True)]


def latex_of_today(tabular):
    r"""A tabular environment of LaTeX with today's names; its heads are above \midrule."""
    lines = tabular.split("\n")
    place_of_heads = lines.index("\\midrule") - 1
    renamed = []
    for place, line in enumerate(lines):
        if not line.endswith(" \\\\") or place < place_of_heads:
            renamed.append(line)
            continue
        cells = [plain(cell) for cell in line.removesuffix(" \\\\").split(" & ")]
        name = head_of_today if place == place_of_heads else cell_of_today
        renamed.append(" & ".join(latex(name(cell)) for cell in cells) + " \\\\")
    return "\n".join(renamed)


_LATEX = {"Δ": "$\\Delta$", "%": "\\%", "≥": "$\\geq$"}


def latex(text):
    """A text for LaTeX, as far as these names need it."""
    for character, command in _LATEX.items():
        text = text.replace(character, command)
    return text


def plain(text):
    """The reverse of `latex`."""
    for character, command in _LATEX.items():
        text = text.replace(command, character)
    return text
