"""Unicode: replaces invisible characters and white space, normalizes, and compares sentences.

Characters that do not print are of two Unicode categories. Formats (Cf), such as the soft hyphen,
the byte order mark and the marks of direction, are inside a word that a reader sees as one: they
are removed (UAX #29, rule WB4). Controls (Cc) and the zero-width space separate words: they become
spaces.
"""

import re
import unicodedata
from collections.abc import Callable
from itertools import groupby
from typing import Literal

from bleuprint.runtime.memoize import BoundedCache

# Format characters that belong to the spelling: the zero-width non-joiner and joiner of several
# scripts, and the Mongolian vowel separator, without which "black" is "look".
_JOINERS = "\u200c\u200d\u180e"
# Format characters that a reader sees: signs before a number or a word (Unicode's
# Prepended_Concatenation_Mark), and the tags of an emoji, such as those of the flag of England.
_VISIBLE_FORMATS = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U000e0020-\U000e007f]"
)
_ZERO_WIDTH_SPACE = "\u200b"

# Python's normalization sorts the combining marks of a letter in quadratic time. That matters only
# for a text with more characters than this.
_MAX_FAST_LENGTH = 1000


class CharacterTable(dict[int, str | None]):
    """A table for `str.translate` that computes the replacement of a character when it is needed.

    Computing it for all of Unicode would take longer than translating a short text.
    """

    def __init__(self, replace: Callable[[str], str | None]) -> None:
        """Create an empty table.

        Args:
            replace: Returns the replacement of a character; None removes the character.
        """
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str | None:
        """Compute and keep the replacement of a code point that occurs for the first time."""
        self[code] = self._replace(chr(code))
        return self[code]


def _spacing_table(*categories: str, keeps_visible_formats: bool = True) -> CharacterTable:
    """Return a table that turns characters into spaces and removes format characters.

    Args:
        categories: The Unicode categories whose characters become spaces.
        keeps_visible_formats: Whether the format characters that a reader sees stay.
    """

    def replace(character: str) -> str | None:
        """Return the replacement of one character; None removes it."""
        category = unicodedata.category(character)
        if category != "Cf":
            return " " if category in categories else character
        if character in _JOINERS:
            return character
        if keeps_visible_formats and _VISIBLE_FORMATS.match(character):
            return character
        return " " if character == _ZERO_WIDTH_SPACE else None

    return CharacterTable(replace)


# Controls are tab, carriage return, the separators \x1c to \x1f, U+0085 and others. Zl and Zp are
# the line and the paragraph separator, Zs are all spaces.
_UNPRINTABLE_TO_SPACE = _spacing_table("Cc", "Zl", "Zp")
_WHITE_TO_SPACE = _spacing_table("Cc", "Zl", "Zp", "Zs")
# All categories except letters, marks and numbers: white space, punctuation (P) and symbols (S).
_NON_WORD_TO_SPACE = _spacing_table(
    "Cc",
    "Zl",
    "Zp",
    "Zs",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "Sm",
    "Sc",
    "Sk",
    "So",
    keeps_visible_formats=False,
)

# Languages with a dotless i: its capital is I, and the capital of i is İ (CLDR: Turkish casing).
_DOTLESS_I_LANGUAGES = frozenset({"tr", "tur", "az", "aze", "azj", "crh", "gag"})

_SEVERAL_SPACES = re.compile("  +")


def collapse_spaces(text: str) -> str:
    """Return a text with one space between words, and none at its ends."""
    text = text.strip(" ")
    return _SEVERAL_SPACES.sub(" ", text) if "  " in text else text


def lowercase_text(text: str, language: str) -> str:
    """Return a text in lower case.

    Args:
        text: The text.
        language: The code of its language. In Turkish and similar languages, İ becomes i, and I
            becomes ı.
    """
    if language in _DOTLESS_I_LANGUAGES:
        # İ may also be written as I with a combining dot, U+0307.
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def normalize_unicode(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return what `unicodedata.normalize` returns, but in linear time for any text.

    Args:
        form: The normalization form.
        text: The text.
    """
    if len(text) > _MAX_FAST_LENGTH:
        text = _sort_combining_marks(text)
    return unicodedata.normalize(form, text)


def _sort_combining_marks(text: str) -> str:
    """Put the combining marks of each letter into canonical order.

    Normalization does the same as its first step, so this changes no normalized text.
    """
    parts = []
    for is_marks, characters in groupby(text, key=_is_combining):
        if is_marks:
            parts.extend(sorted(characters, key=unicodedata.combining))
        else:
            parts.extend(characters)
    return "".join(parts)


def _is_combining(character: str) -> bool:
    """Whether a character is a mark that combines with the letter before it."""
    return unicodedata.combining(character) > 0


def comparison_key(text: str) -> str:
    """Return a key that is equal for sentences with the same words.

    The key consists of the letters, marks and numbers, case-folded and in compatible form (NFKC).
    So spaces, punctuation, case and compatible characters do not count. The key of a sentence
    without any letter or number is the sentence itself, in compatible form with single spaces.
    """
    # Normalization does not cross a space, so the words can be folded one by one and cached.
    folded_words = [_FOLDED_WORDS[word] for word in text.split(" ")]
    key = "".join(folded_words)
    if key:
        return key
    return collapse_spaces(normalize_unicode("NFKC", text).translate(_WHITE_TO_SPACE))


def _fold_word(word: str) -> str:
    """Return the letters, marks and numbers of a word, case-folded and in compatible form."""
    # Before NFKC, since NFKC turns some symbols into a space with a combining mark.
    letters = word.translate(_NON_WORD_TO_SPACE)
    # Folding may produce text that is not normalized, so it is normalized again.
    folded = normalize_unicode("NFKC", letters).casefold()
    folded = normalize_unicode("NFKC", folded)
    return folded.translate(_NON_WORD_TO_SPACE).replace(" ", "")


_FOLDED_WORDS = BoundedCache(_fold_word)


def replace_unprintable(text: str) -> str:
    """Return a text without format characters, and with a space for each control character."""
    # Most sentences are printable, and this test is fast.
    if text.isprintable():
        return text
    return text.translate(_UNPRINTABLE_TO_SPACE)


def replace_white_space(text: str) -> str:
    """Return what `replace_unprintable` returns, with a plain space for every other white space.

    Other white space is the no-break space, the thin space and so on.
    """
    # A printable text contains no white space except plain spaces.
    if text.isprintable():
        return text
    return text.translate(_WHITE_TO_SPACE)
