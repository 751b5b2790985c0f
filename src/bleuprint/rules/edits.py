"""Edits of the characters of a sentence. After all edits, runs of spaces become one space."""

import html
import re
from dataclasses import dataclass
from functools import cache
from html.entities import html5
from typing import Any, ClassVar, Literal

from bleuprint.rules.rule import Edit
from bleuprint.text.unicode import normalize_unicode, replace_unprintable

# An HTML entity. The semicolon is required: HTML itself would decode "&copy=1" in an address, too.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]*);")
# A tag of a known HTML element; other text such as "a < b" is kept.
_TAG = re.compile(
    r"</?(?:a|abbr|b|big|br|center|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|small|span|strong|sub|"
    r"sup|table|td|th|tr|tt|u|ul)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
# The element wbr, where a line may be broken inside of a word.
_WORD_BREAK = re.compile(r"</?wbr\s*/?>", re.IGNORECASE)
# Mojibake: UTF-8 that was read as Windows-1252 or Latin-1. The expression covers letters of Latin-1
# (two bytes in UTF-8), and punctuation and formats such as the byte order mark (three bytes).
# Longer ranges would include correct text, such as "là »" with a no-break space. An Ã at the end of
# a word in capitals (IRMÃ”) is correct as well.
_MOJIBAKE = re.compile(
    "[ÂÃ](?!(?<=[A-ZÀ-Þ]Ã)[…”’»–—“‘](?!\\w))[\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]|Å[\u0092\u0093’“]"
    "|â[\u0080€][\u0080-\u00bf‘’“”•–—˜™š›œžŸ¦‹ŒŽ]|â[\u0082‚]¬|ï»¿"
)
_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

# Each rule of sacremoses' normalizer, in every language, changes only sentences that contain one of
# these characters or sequences. Other printable sentences need not pass through it, which is slow.
_CHARACTERS_TO_NORMALIZE = re.compile('[()"`´„“”–—‘’‚…«»\u00a0]')
_SEQUENCES_TO_NORMALIZE = ("  ", " %", " :", " ;", "''")


@dataclass(frozen=True)
class Entities(Edit):
    """Decodes HTML entities, named (`&quot;`) and numeric (`&#39;`, `&#x27;`).

    Once: `&amp;lt;` becomes `&lt;`. The entity of a line break becomes a space.
    """

    rank: ClassVar[int] = 10

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        """Decode the entities of a sentence."""
        return _ENTITY.sub(_decode_entity, sentence)


@dataclass(frozen=True)
class HtmlTags(Edit):
    """Replaces HTML tags, as in `<b>bold</b>`, by spaces; escaped ones after `entities`.

    `<wbr>`, where a long word may be broken, is removed.
    """

    rank: ClassVar[int] = 12

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        """Remove <wbr> from a sentence, and replace other tags by spaces."""
        return _TAG.sub(" ", _WORD_BREAK.sub("", sentence))


@dataclass(frozen=True)
class Mojibake(Edit):
    """Restores letters of UTF-8 that was read as Windows-1252 or Latin-1 (`Ã¼` becomes `ü`)."""

    rank: ClassVar[int] = 14

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        """Restore characters that became two or three others when UTF-8 was read in a wrong way."""
        if sentence.isascii():
            return sentence  # The wrong characters are not ASCII.
        return _MOJIBAKE.sub(_decode_again, sentence)


@dataclass(frozen=True)
class Unicode(Edit):
    """Normalizes a sentence to a Unicode form; NFKC also replaces ligatures (ﬁ by fi)."""

    rank: ClassVar[int] = 20
    form: Literal["NFC", "NFKC"] = "NFC"

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        """Normalize a sentence."""
        return normalize_unicode(self.form, sentence)


@dataclass(frozen=True)
class NonPrinting(Edit):
    """Removes formats inside words, such as soft hyphens, byte order marks, marks of direction.

    Control characters and zero-width spaces become spaces; joiners, and signs such as U+06DD, stay.
    """

    rank: ClassVar[int] = 30

    def edit(self, sentence: str, language: str) -> str:  # noqa: ARG002
        """Remove or replace the characters of a sentence that do not print."""
        return replace_unprintable(sentence)


@dataclass(frozen=True)
class Punctuation(Edit):
    """Normalizes quotation marks, dashes and other punctuation as Moses does.

    Non-printing characters become spaces. Most no-break spaces are kept: the rules need them.
    """

    rank: ClassVar[int] = 40

    def edit(self, sentence: str, language: str) -> str:
        """Normalize the punctuation of a sentence by the rules of Moses for its language.

        The rules are slow, so a quick test finds the sentences that they would not change.
        """
        text = replace_unprintable(sentence)
        if not _needs_normalizer(text):
            return text.strip()  # The normalizer would change nothing else.
        normalized: str = _normalizer(language).normalize(text)
        return normalized


def _decode_entity(entity: re.Match[str]) -> str:
    """Return the character that an HTML entity encodes: `ü` for `&uuml;` or `&#252;`.

    An unknown entity, such as `&notit;`, is returned unchanged. A line break becomes a space.

    Args:
        entity: The match of an entity, from & to the semicolon.
    """
    entity_text = entity[0]
    name = entity_text[1:]  # With its semicolon, as in the table `html5`: `uuml;`, or `#252;`.
    is_known = name.startswith("#") or name in html5
    if not is_known:
        # html.unescape would decode the first letters: `&notit;` begins with `&not`, the sign ¬.
        return entity_text
    # For the number of a control character, html.unescape returns an empty string.
    character = html.unescape(entity_text) or " "
    return _LINE_ENDS.sub(" ", character)


def _decode_again(mojibake: re.Match[str]) -> str:
    """Repair a character whose UTF-8 bytes were decoded by a wrong encoding: `Ã¼` becomes `ü`.

    The wrong characters are encoded to the original bytes, which are then decoded as UTF-8. If the
    bytes are not valid UTF-8, the characters are returned unchanged.

    Args:
        mojibake: The match of two or three characters that may be wrongly decoded UTF-8.
    """
    original_bytes = b""
    for character in mojibake[0]:
        # The wrong encoding was Windows-1252 or Latin-1. Characters up to U+00FF have the same byte
        # in both, or exist only in Latin-1. Those above, such as €, exist only in Windows-1252.
        wrong_encoding = "latin-1" if character <= "\xff" else "cp1252"
        original_bytes += character.encode(wrong_encoding)
    try:
        return _LINE_ENDS.sub(" ", original_bytes.decode())
    except UnicodeDecodeError:
        return mojibake[0]


def _needs_normalizer(text: str) -> bool:
    """Return whether Moses' rules for punctuation may change a sentence.

    Each rule changes only sentences that contain a certain character, such as a quotation mark, or
    a certain sequence, such as two spaces. This function searches for all of them.
    """
    if _CHARACTERS_TO_NORMALIZE.search(text):
        return True
    return any(sequence in text for sequence in _SEQUENCES_TO_NORMALIZE)


@cache
def _normalizer(language: str) -> Any:
    """Return sacremoses' normalizer of punctuation, with one of its rules replaced by a faster one.

    Args:
        language: The code of the language, for which the normalizer may have rules of its own.
    """
    # Imported here: every stage loads this module, and the library takes a quarter of a second.
    from sacremoses import MosesPunctNormalizer

    normalizer = MosesPunctNormalizer(language)
    # The slow rule moves a quotation mark before the dots that it follows. It takes quadratic time
    # on long rows of dots.
    substitutions = []
    for substitution in normalizer.substitutions:
        if substitution == _SLOW_DOTS_RULE:
            substitution = _FAST_DOTS_RULE
        substitutions.append(substitution)
    normalizer.substitutions = substitutions
    return normalizer


def _dots_after_quote(match: re.Match[str]) -> str:
    """Move a quotation mark before the dots that it follows: `..." A` becomes `"... A`.

    Args:
        match: A row of dots (group 1) and, if a quotation mark follows it, the text after the mark
            (group 2). Without a mark, group 2 is None, and the dots are returned unchanged.
    """
    dots = match[1]
    text_after_quote = match[2]
    has_quote = text_after_quote is not None
    return f'"{dots}{text_after_quote}' if has_quote else dots


# A rule of the normalizer for German, Spanish and French moves a row of dots after the quotation
# mark that follows it. Its time is quadratic: without a mark, it reads the row again from each dot.
_SLOW_DOTS_RULE = (r'(\.+)"(\s*[^<])', r'"\g<1>\g<2>')
# The same rule in linear time. It also matches a row without a mark, which then stays unchanged.
_FAST_DOTS_RULE = (r'(\.++)(?:"(\s*[^<]))?', _dots_after_quote)
