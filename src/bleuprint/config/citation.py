"""What to cite: BibTeX entries, and the license of a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import regex
from pydantic import AfterValidator

from bleuprint.runtime.schema import NotBlank

# An entry with its key, up to the end of its braces. They may be nested: (?2) matches the second
# group, a pair of braces, inside itself.
_ENTRY = regex.compile(r"@\w+\s*\{\s*([^\s,{}]+)\s*,(?:[^{}]|(\{(?:[^{}]|(?2))*+\}))*+\}")


# Messages show so many characters of a text.
_SHOWN_CHARACTERS = 40


def entries(bibtex: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each BibTeX entry."""
    for match in _ENTRY.finditer(bibtex):
        yield match[1], match[0]


def _check_bibtex(bibtex: str) -> str:
    """Check that a setting consists of BibTeX entries.

    pydantic calls this function to validate the setting, and uses the text that it returns. The
    text is returned unchanged.

    Raises:
        ValueError: The text is empty, or contains something besides BibTeX entries. The message
            shows the beginning of what is wrong.
    """
    text_between_entries = _ENTRY.sub("", bibtex).strip()
    is_empty = not bibtex.strip()
    if is_empty or text_between_entries:
        shown_text = text_between_entries[:_SHOWN_CHARACTERS]
        raise ValueError(
            f"{shown_text!r} is not a BibTeX entry. Write '@type{{key, ...}}' with balanced braces"
        )
    return bibtex


Bibtex = Annotated[str, AfterValidator(_check_bibtex)]


@dataclass(frozen=True)
class LicenseAndCitation:
    """The license of a text, and what to cite for it.

    Attributes:
        license: The license, in one line.
        bibtex: One or more BibTeX entries.
    """

    license: NotBlank
    bibtex: Bibtex
