"""Text that others wrote, such as `about`, a license or another report, for each kind of output.

A terminal obeys control characters, and marks of direction reorder a line; a spreadsheet computes
cells that begin like a formula. Markdown is in runtime/html, LaTeX in report/render.py; shell words
are quoted by shlex.
"""

import re
from typing import TypeVar

from bleuprint.runtime.streams import printable

T = TypeVar("T")

# C0 but for tab and line feed, DEL and C1.
_CONTROLS = (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))
# The bidirectional controls of UAX #9, and the separators of lines and paragraphs.
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_PRINTED: dict[int, str | None] = {
    **dict.fromkeys(_CONTROLS, " "),
    **dict.fromkeys((0x2028, 0x2029), " "),
    **dict.fromkeys(_DIRECTIONS),
}
_UNPRINTED = re.compile(f"[{''.join(map(chr, _PRINTED))}]")
# The first characters of formulas, also in the wide form that East Asian keyboards write.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def remove_controls(text: str) -> str:
    """`text` for a document: control characters become spaces, marks of direction are removed."""
    return text.translate(_PRINTED) if _UNPRINTED.search(text) else text


def clean_value(value: T) -> T:
    """A value of a table or a template: texts without controls, everything else as it is."""
    if isinstance(value, str) and _UNPRINTED.search(value):
        return type(value)(remove_controls(value))
    return value


def spreadsheet_cell(value: T) -> T | str:
    """A value of a CSV file: a text that a spreadsheet would compute begins with an apostrophe.

    Numbers stay numbers, also those that are texts, as -1.3 is where it was printed so.
    """
    if not isinstance(value, str):
        return value
    text = remove_controls(value)
    begins = text.lstrip()
    if not begins.startswith(_FORMULA) and text[:1] != "\t":
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def print_escaped(text: str) -> None:
    """Print a line for a reader on standard output, control characters escaped."""
    print("\n".join(map(printable, text.split("\n"))), flush=True)
