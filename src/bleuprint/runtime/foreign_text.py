"""Text that others wrote, such as a license or another report, made safe for each kind of output.

A terminal obeys control characters, marks of direction reorder a line, and a spreadsheet computes
cells that begin like a formula. Text for Markdown and HTML is escaped in `runtime/html`, text for
LaTeX in `report/render.py`.
"""

import re
from typing import TypeVar

from bleuprint.runtime.streams import (
    BIDI_MARKS,
    LINE_SEPARATORS,
    TERMINAL_CONTROLS,
    printable,
)

T = TypeVar("T")

# What replaces each invisible character in a document: a space, or nothing.
_REPLACEMENTS: dict[int, str | None] = dict.fromkeys(TERMINAL_CONTROLS | LINE_SEPARATORS, " ")
_REPLACEMENTS |= dict.fromkeys(BIDI_MARKS)
_REPLACED = re.compile(f"[{''.join(map(chr, _REPLACEMENTS))}]")
# The first characters of formulas, also in the wide form that East Asian keyboards write.
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def remove_controls(text: str) -> str:
    """Return a text without characters that could damage the document in which it is shown.

    Control characters become spaces. Marks that change the writing direction, which would also
    affect the text around, are removed.
    """
    # Nearly all texts have no such characters, and the search is faster than the translation.
    if _REPLACED.search(text) is None:
        return text
    return text.translate(_REPLACEMENTS)


def clean_value(value: T) -> T:
    """Return a value that is safe in a table or a template.

    Control characters in a text become spaces. Any value that is not a text is returned unchanged.
    """
    if isinstance(value, str) and _REPLACED.search(value):
        # Keep the class of the text: markupsafe.Markup, for example, marks text that is HTML.
        return type(value)(remove_controls(value))
    return value


def spreadsheet_cell(value: T) -> T | str:
    """Return a value that is safe in a CSV file, which users open in a spreadsheet.

    A spreadsheet executes a text that begins like a formula, such as `=1+1`. An apostrophe before
    such a text makes the spreadsheet show it unchanged. A number, such as -1.3, gets none.
    """
    if not isinstance(value, str):
        return value
    text = remove_controls(value)
    may_be_formula = text.lstrip().startswith(_FORMULA_STARTS) or text.startswith("\t")
    if may_be_formula and not _is_number(text):
        return f"'{text}"
    return text


def _is_number(text: str) -> bool:
    """Return whether Python can read a text as a number, such as `-1.3`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def print_escaped(text: str) -> None:
    """Print a text for a reader on standard output, its control characters escaped."""
    lines = [printable(line) for line in text.split("\n")]
    print("\n".join(lines), flush=True)
