"""Edits: the characters of a sentence put right. Spaces are folded after them all."""

import html
import re
import unicodedata
from dataclasses import dataclass
from html.entities import html5
from typing import ClassVar, Literal

from bleuprint.rules.punctuation import normalize_punctuation
from bleuprint.rules.rule import Edit
from bleuprint.text.unicode import blank_unprinted

# With its semicolon: of "&copy=1" in an address, or of "AT&T", HTML would make something too.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);")
_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Entities(Edit):
    """HTML's entities, named (`&quot;`) and numbered (`&#39;`, `&#x27;`), become characters.

    Once: `&amp;lt;` becomes `&lt;`. One that stands for a line's end becomes a space.
    """

    rank: ClassVar[int] = 10

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return _ENTITY.sub(_decoded, sentence)


@dataclass(frozen=True)
class Unicode(Edit):
    """A sentence is brought to a Unicode form; NFKC makes compatible characters one: ﬁ is fi."""

    rank: ClassVar[int] = 20
    form: Literal["NFC", "NFKC"]

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return unicodedata.normalize(self.form, sentence)


@dataclass(frozen=True)
class NonPrinting(Edit):
    """Controls and what is not printed (soft hyphens, byte order marks, ...) become spaces."""

    rank: ClassVar[int] = 30

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return blank_unprinted(sentence)


@dataclass(frozen=True)
class Punctuation(Edit):
    """Quotation marks, dashes and the like are written as Moses' normaliser writes them."""

    rank: ClassVar[int] = 40

    def edit(self, sentence: str, language: str) -> str:
        return normalize_punctuation(sentence, language)


def _decoded(entity: re.Match[str]) -> str:
    written = entity[0]
    if written[1] != "#" and written[1:] not in html5:
        return written  # HTML would read &notit; as &not and it;
    return _LINE_ENDS.sub(" ", html.unescape(written))
