"""Edits of the characters of a sentence. After all edits, runs of spaces become one space."""

import html
import re
from dataclasses import dataclass
from functools import cache
from html.entities import html5
from typing import Any, ClassVar, Literal

from bleuprint.rules.rule import Edit
from bleuprint.text.unicode import normalize_unicode, replace_unprintable

# With a semicolon only: HTML would also decode "&copy=1" in an address.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);")
# Known HTML elements only, so that "a < b" is kept.
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|br|center|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|small|span|strong|sub|"
    r"sup|table|td|th|tr|tt|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
# An element that ends no word: a line may be broken there.
_WORD_BREAK = re.compile(r"</?wbr\s*/?>", re.IGNORECASE)
# Letters of Latin-1 (two bytes in UTF-8), punctuation and formats such as the byte order mark
# (three) as Windows-1252 or Latin-1 read them. Longer ranges would include correct text, such as
# "là »" with a no-break space. Ã at the end of a capitalized word (IRMÃ”) is no mojibake.
_MOJIBAKE = re.compile(
    "[ÂÃ](?!(?<=[A-ZÀ-Þ]Ã)[…”’»–—“‘](?!\\w))[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Å[\u0092\u0093’“]"
    "|â[\u0080€][\u0080-\u00bf‘’“”•–—˜™š›œžŸ¦‹ŒŽ]|â[\u0082‚]¬|ï»¿"
)
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
class HtmlTags(Edit):
    """Replaces HTML tags, as in `<b>bold</b>`, by spaces; escaped ones after `entities`.

    `<wbr>`, where a long word may be broken, is removed.
    """

    rank: ClassVar[int] = 12

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return _TAG.sub(" ", _WORD_BREAK.sub("", sentence))


@dataclass(frozen=True)
class Mojibake(Edit):
    """Restores letters of UTF-8 that was read as Windows-1252 or Latin-1 (`Ã¼` becomes `ü`)."""

    rank: ClassVar[int] = 14

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return sentence if sentence.isascii() else _MOJIBAKE.sub(_decoded_again, sentence)


@dataclass(frozen=True)
class Unicode(Edit):
    """Normalizes a sentence to a Unicode form; NFKC also replaces ligatures (ﬁ by fi)."""

    rank: ClassVar[int] = 20
    form: Literal["NFC", "NFKC"] = "NFC"

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return normalize_unicode(self.form, sentence)


@dataclass(frozen=True)
class NonPrinting(Edit):
    """Removes formats inside words, such as soft hyphens, byte order marks, marks of direction.

    Control characters and zero-width spaces become spaces; joiners, and signs such as U+06DD, stay.
    """

    rank: ClassVar[int] = 30

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        return replace_unprintable(sentence)


@dataclass(frozen=True)
class Punctuation(Edit):
    """Normalizes quotation marks, dashes and other punctuation as Moses does.

    Non-printing characters become spaces. Most no-break spaces are kept: the rules need them.
    """

    rank: ClassVar[int] = 40

    def edit(self, sentence: str, language: str) -> str:
        text = replace_unprintable(sentence)
        if _CHARACTERS.search(text) or any(sequence in text for sequence in _SEQUENCES):
            normalized: str = _normalizer(language).normalize(text)
            return normalized
        return text.strip()


def _decoded(entity: re.Match[str]) -> str:
    written = entity[0]
    if written[1] != "#" and written[1:] not in html5:
        return written  # HTML would decode &notit; as &not and it;
    return _LINE_ENDS.sub(" ", html.unescape(written) or " ")  # Python removes controls


def _decoded_again(characters: re.Match[str]) -> str:
    # Windows-1252 where it has the character, else Latin-1
    data = b"".join(c.encode("latin-1" if c <= "\xff" else "cp1252") for c in characters[0])
    try:
        return _LINE_ENDS.sub(" ", data.decode())
    except UnicodeDecodeError:
        return characters[0]


@cache
def _normalizer(language: str) -> Any:
    # imported here: every stage loads this module, and the library takes a quarter of a second
    from sacremoses import MosesPunctNormalizer

    normalizer = MosesPunctNormalizer(language)
    normalizer.substitutions = [
        _DOTS_IN_QUOTES if rule == _QUADRATIC else rule for rule in normalizer.substitutions
    ]
    return normalizer


def _dots_before_quote(dots: re.Match[str]) -> str:
    return dots[0] if dots[2] is None else f'"{dots[1]}{dots[2]}'


# A rule of the library for German, Spanish and French reads a row of dots once for each of them;
# the same rule, which also matches, and leaves, a row without a quotation mark.
_QUADRATIC = (r'(\.+)"(\s*[^<])', r'"\g<1>\g<2>')
_DOTS_IN_QUOTES = (r'(\.++)(?:"(\s*[^<]))?', _dots_before_quote)
