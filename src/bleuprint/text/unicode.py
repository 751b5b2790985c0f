"""Removes format characters, replaces controls and white space; normalizes and compares sentences.

Of the characters that do not print (the categories Cc and Cf), formats such as the soft hyphen, the
byte order mark and marks of direction are inside a word that a reader sees as one: they are removed
(UAX #29, rule WB4). Controls and the zero-width space separate words: they become spaces.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import chain, groupby
from typing import Literal

from bleuprint.runtime.memoize import BoundedCache

# Formats that are part of the spelling: zero-width non-joiner and joiner in several scripts, the
# Mongolian vowel separator (without it "black" is "look").
_JOINERS = "\u200c\u200d\u180e"
# Formats that show: signs before a number or a word (Unicode's Prepended_Concatenation_Mark), and
# the tags of an emoji, such as those of the flag of England.
_SIGNS = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U000e0020-\U000e007f]"
)
_ZERO_WIDTH_SPACE = "\u200b"

# Normalization sorts the marks of a letter in quadratic time; up to this length that takes no time.
_MANY = 1000


class CharacterTable(dict[int, str | None]):
    """A table for str.translate, of the characters that `replace` returns; None removes one.

    Filled lazily: listing all of Unicode takes longer than a short text.
    """

    def __init__(self, replace: Callable[[str], str | None]) -> None:
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str | None:
        self[code] = self._replace(chr(code))
        return self[code]


def _blanking(*categories: str, signs: bool = True) -> CharacterTable:
    """Characters of some Unicode categories become spaces; formats are removed.

    Joiners are kept, and with `signs` the formats that show.
    """

    def replace(character: str) -> str | None:
        category = unicodedata.category(character)
        if category != "Cf":
            return " " if category in categories else character
        if character in _JOINERS or (signs and _SIGNS.match(character)):
            return character
        return " " if character == _ZERO_WIDTH_SPACE else None

    return CharacterTable(replace)


# Controls (tab, carriage return, the separators \x1c to \x1f, U+0085) and the line and paragraph
# separators.
_UNPRINTED = _blanking("Cc", "Zl", "Zp")
_WHITE = _blanking("Cc", "Zl", "Zp", "Zs")
_WORDLESS = _blanking(
    *("Cc", "Zl", "Zp", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"),
    signs=False,
)

# Languages that write a dotless i too, whose capital is I, and İ that of i (CLDR: Turkish casing).
_TWO_I = frozenset({"tr", "tur", "az", "aze", "azj", "crh", "gag"})

_SPACES = re.compile("  +")


def collapse_spaces(text: str) -> str:
    """`text` with one space between words, and none around them."""
    text = text.strip(" ")
    return _SPACES.sub(" ", text) if "  " in text else text


def lowercase_text(text: str, language: str) -> str:
    """`text` in lower case; in Turkish and languages like it, İ becomes i and I becomes ı."""
    if language in _TWO_I:
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def normalize_unicode(form: Literal["NFC", "NFKC"], text: str) -> str:
    """`text` in a normalization form, as unicodedata.normalize gives it, in linear time."""
    if len(text) > _MANY:
        text = _with_sorted_marks(text)
    return unicodedata.normalize(form, text)


def _with_sorted_marks(text: str) -> str:
    """`text` with the marks of each letter in canonical order, which changes no form of it."""
    order = unicodedata.combining
    letters_and_marks = groupby(text, key=lambda character: order(character) > 0)
    return "".join(chain.from_iterable(sorted(part, key=order) for _, part in letters_and_marks))


def comparison_key(text: str) -> str:
    """The letters, marks and numbers of a sentence, case-folded and in compatible form (NFKC).

    Equal for sentences that differ only in spaces, punctuation, case and compatible forms. A
    sentence without any is returned with single spaces.
    """
    # Normalization does not cross a space: words are folded one by one.
    letters = "".join(map(_FOLDED.__getitem__, text.split(" ")))
    return letters or collapse_spaces(normalize_unicode("NFKC", text).translate(_WHITE))


def _folded(word: str) -> str:
    letters = word.translate(_WORDLESS)  # first: NFKC turns some signs into spaces with an accent
    folded = normalize_unicode("NFKC", normalize_unicode("NFKC", letters).casefold())
    return folded.translate(_WORDLESS).replace(" ", "")


_FOLDED = BoundedCache(_folded)


def replace_unprintable(text: str) -> str:
    """`text` without formats, and with each control replaced by a space; see above."""
    if text.isprintable():  # true of most sentences, and fast
        return text
    return text.translate(_UNPRINTED)


def replace_white_space(text: str) -> str:
    """As `replace_unprintable`, with all white space (no-break, thin, ...) replaced too."""
    if text.isprintable():
        return text
    return text.translate(_WHITE)
