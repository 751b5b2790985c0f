"""Edits of the characters of a sentence. After all edits, runs of spaces become one space."""

import html
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from html.entities import html5
from typing import Any, ClassVar, Literal

from bleuprint.rules.rule import Edit
from bleuprint.text.unicode import blank_unprinted

# With a semicolon only: HTML would also decode "&copy=1" in an address.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);")
_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

# Every rule of sacremoses' normalizer, in every language, needs one of these: other printable
# sentences do not change.
_CHARACTERS = re.compile('[()"`´„“”–—‘’‚…«»\u00a0]')
_SEQUENCES = ("  ", " %", " :", " ;", "''")


@dataclass(frozen=True)
class Entities(Edit):
    """Decodes HTML entities, named (`&quot;`) and numeric (`&#39;`, `&#x27;`).

    Once: `&amp;lt;` becomes `&lt;`. The entity of a line break becomes a space.
    """

    rank: ClassVar[int] = 10

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return _ENTITY.sub(_decoded, sentence)


@dataclass(frozen=True)
class Unicode(Edit):
    """Normalizes a sentence to a Unicode form; NFKC also replaces ligatures (ﬁ by fi)."""

    rank: ClassVar[int] = 20
    form: Literal["NFC", "NFKC"]

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return unicodedata.normalize(self.form, sentence)


@dataclass(frozen=True)
class NonPrinting(Edit):
    """Replaces control and non-printing characters (soft hyphens, byte order marks) by spaces."""

    rank: ClassVar[int] = 30

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return blank_unprinted(sentence)


@dataclass(frozen=True)
class Punctuation(Edit):
    """Normalizes quotation marks, dashes and other punctuation as Moses does.

    Non-printing characters become spaces. Most no-break spaces are kept: the rules need them.
    """

    rank: ClassVar[int] = 40

    def edit(self, sentence: str, language: str) -> str:
        text = blank_unprinted(sentence)
        if _CHARACTERS.search(text) or any(sequence in text for sequence in _SEQUENCES):
            normalized: str = _normalizer(language).normalize(text)
            return normalized
        return text.strip()


def _decoded(entity: re.Match[str]) -> str:
    written = entity[0]
    if written[1] != "#" and written[1:] not in html5:
        return written  # HTML would decode &notit; as &not and it;
    return _LINE_ENDS.sub(" ", html.unescape(written))


@cache
def _normalizer(language: str) -> Any:
    # imported here: every stage loads this module, and the library takes a quarter of a second
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(language)
