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
    """Return a text for a document: control characters become spaces, marks of direction go."""
    # Nearly all texts have none, and the search is faster than the translation.
    if _REPLACED.search(text) is None:
        return text
    return text.translate(_REPLACEMENTS)


def clean_value(value: T) -> T:
    """Return a value for a table or a template: a text without controls, any other value itself."""
    if isinstance(value, str) and _REPLACED.search(value):
        # The class is kept: markupsafe.Markup is a text that is HTML already.
        return type(value)(remove_controls(value))
    return value


def spreadsheet_cell(value: T) -> T | str:
    """Return a value for a CSV file.

    A text that a spreadsheet would compute as a formula gets an apostrophe, which makes it a text.
    A text that is a number, such as -1.3, stays a number.
    """
    if not isinstance(value, str):
        return value
    text = remove_controls(value)
    may_be_formula = text.lstrip().startswith(_FORMULA_STARTS) or text.startswith("\t")
    if not may_be_formula or _is_number(text):
        return text
    return f"'{text}"


def _is_number(text: str) -> bool:
    """Return whether a text is a number for Python, such as `-1.3`."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def print_escaped(text: str) -> None:
    """Print a text for a reader on standard output, its control characters escaped."""
    lines = [printable(line) for line in text.split("\n")]
    print("\n".join(lines), flush=True)
