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
from bleuprint.text.language_codes import language_code

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
        """Create a table without entries, which are computed when they are needed.

        Args:
            replace: The function that returns the replacement of a character; None removes it.
        """
        super().__init__()
        self._replace = replace

    def __missing__(self, code: int) -> str | None:
        """Compute and keep the replacement of a code point that occurs for the first time."""
        self[code] = self._replace(chr(code))
        return self[code]


def _spacing_table(*categories: str, keeps_visible_formats: bool = True) -> CharacterTable:
    """Create a table for `str.translate` that replaces characters by spaces, or removes them.

    The characters of some categories become spaces. Format characters, which are invisible, such as
    the soft hyphen, are removed, with three exceptions:

    - The zero-width space becomes a space.
    - Joiners stay, since in some scripts they change how the letters around them look.
    - So do format characters that a reader sees, if the caller wants to keep them.

    Args:
        categories: The Unicode categories whose characters become spaces, such as Zs for spaces.
        keeps_visible_formats: Whether format characters that a reader sees stay, such as the tags
            of a flag emoji.
    """

    def replace(character: str) -> str | None:
        """Return a space, the character itself, or None to remove the character from a text.

        Format characters are removed, except those that change what a reader sees.
        """
        category = unicodedata.category(character)
        # Format characters have Unicode's category Cf. Most are invisible, as the soft hyphen is.
        is_format = category == "Cf"
        if not is_format:
            return " " if category in categories else character
        is_visible = keeps_visible_formats and _VISIBLE_FORMATS.match(character)
        if is_visible or character in _JOINERS:
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
_DOTLESS_I_LANGUAGES = frozenset({"tr", "az", "crh", "gag"})

_SEVERAL_SPACES = re.compile("  +")


def collapse_spaces(text: str) -> str:
    """Return a text with one space between words, and none at its ends."""
    text = text.strip(" ")
    return _SEVERAL_SPACES.sub(" ", text) if "  " in text else text


def lowercase_text(text: str, language: str) -> str:
    """Return a text in lower case, as its language writes it.

    In Turkish and similar languages, the lower case of İ is i, and that of I is ı.

    Args:
        text: The text.
        language: The code of its language, such as `tr`.
    """
    if language_code(language) in _DOTLESS_I_LANGUAGES:
        # İ may also be written as I with a combining dot, U+0307.
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def normalize_unicode(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Normalize a text to a Unicode form, quickly even if a letter has thousands of accents.

    Python sorts the accents of each letter by an algorithm that takes quadratic time. In a long
    text, they are sorted beforehand by a faster one, so that Python finds them in order. The result
    is the same.

    Args:
        form: NFC, in which é is one character, or NFKC, in which ² also becomes 2.
        text: The text.
    """
    is_long = len(text) > _MAX_FAST_LENGTH
    if is_long:
        text = _sort_combining_marks(text)
    return unicodedata.normalize(form, text)


def _sort_combining_marks(text: str) -> str:
    """Sort the combining marks of each letter, such as accents, into the order of Unicode.

    Unicode normalization also begins with this step. Its result for the sorted text is the same as
    for the original one, and Python computes it faster.
    """
    sorted_characters: list[str] = []
    for is_marks, characters in groupby(text, key=_is_combining):
        if is_marks:
            sorted_characters.extend(sorted(characters, key=unicodedata.combining))
        else:
            sorted_characters.extend(characters)
    return "".join(sorted_characters)


def _is_combining(character: str) -> bool:
    """Return whether a character is a mark that combines with the letter before it."""
    return unicodedata.combining(character) > 0


def comparison_key(text: str) -> str:
    """Return a key that is equal for sentences with the same words, such as "Oh, no!" and "oh no".

    Both have the key `ohno`. It consists of the letters, accents and numbers of the sentence, in
    lower case and in Unicode's form NFKC, in which ² is 2. The key of a sentence without any letter
    or number is the sentence itself, with single spaces.
    """
    # Normalization never joins characters across a space, so each word can be folded alone. The
    # cache folds a word when it is looked up for the first time.
    folded_words = [_FOLDED_WORDS[word] for word in text.split(" ")]
    key = "".join(folded_words)
    if key:
        return key
    return collapse_spaces(normalize_unicode("NFKC", text).translate(_WHITE_TO_SPACE))


def _fold_word(word: str) -> str:
    """Return the letters, accents and numbers of a word in a normal form: `strasse` for "Straße!".

    Case folding makes all letters lower-case, and writes ß as ss. Unicode's form NFKC writes
    special characters as ordinary ones: ² as 2.
    """
    # Symbols are replaced before NFKC, which would turn some of them into a space with an accent.
    letters = word.translate(_NON_WORD_TO_SPACE)
    case_folded = normalize_unicode("NFKC", letters).casefold()
    # Case folding may produce text that is not normalized, and symbols.
    normalized = normalize_unicode("NFKC", case_folded)
    return normalized.translate(_NON_WORD_TO_SPACE).replace(" ", "")


_FOLDED_WORDS = BoundedCache(_fold_word)


def replace_unprintable(text: str) -> str:
    """Remove format characters, such as the soft hyphen; replace control characters by spaces."""
    # Most sentences contain neither, and this test is fast.
    if text.isprintable():
        return text
    return text.translate(_UNPRINTABLE_TO_SPACE)


def replace_white_space(text: str) -> str:
    """Replace all white space and control characters by plain spaces; remove format characters.

    White space also includes the no-break space, the thin space and so on. A format character is
    invisible and inside a word, such as the soft hyphen.
    """
    # A printable text contains no white space except plain spaces.
    if text.isprintable():
        return text
    return text.translate(_WHITE_TO_SPACE)
