"""What to cite: BibTeX entries, and the license of a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import regex
from pydantic import AfterValidator

from bleuprint.runtime.schema import NotBlank

# An entry with its key, up to the end of its braces, which may be nested: (?2) is a group itself.
_ENTRY = regex.compile(r"@\w+\s*\{\s*([^\s,{}]+)\s*,(?:[^{}]|(\{(?:[^{}]|(?2))*+\}))*+\}")


def entries(bibtex: str) -> Iterator[tuple[str, str]]:
    """Each entry with its key."""
    return ((found[1], found[0]) for found in _ENTRY.finditer(bibtex))


def _checked(bibtex: str) -> str:
    """Raise ValueError unless the text is one or more entries."""
    rest = _ENTRY.sub("", bibtex).strip()
    if rest or not bibtex.strip():
        raise ValueError(
            f"{rest[:40]!r} is not a BibTeX entry: write '@type{{key, ...}}' with balanced braces"
        )
    return bibtex


Bibtex = Annotated[str, AfterValidator(_checked)]


@dataclass(frozen=True)
class LicenseAndCitation:
    """The license of a text, in one line, and one or more BibTeX entries to cite."""

    license: NotBlank
    bibtex: Bibtex
