"""Replaces non-printing characters and white space; compares sentences by their letters."""

import re
import unicodedata
from collections.abc import Callable

from bleuprint.runtime.memoize import BoundedCache

# Zero-width joiner and non-joiner: not printing, but part of the spelling in several scripts.
_JOINERS = "\u200c\u200d"


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


def _blanking(*categories: str) -> CharacterTable:
    """Characters of some Unicode categories become spaces."""
    return CharacterTable(
        lambda c: " " if unicodedata.category(c) in categories and c not in _JOINERS else c
    )


# Controls (tab, carriage return, the separators \x1c to \x1f, U+0085), formats (byte order mark,
# zero-width space, soft hyphen, directions) and the line and paragraph separators.
_UNPRINTED = _blanking("Cc", "Cf", "Zl", "Zp")
_WHITE = _blanking("Cc", "Cf", "Zl", "Zp", "Zs")
_WORDLESS = _blanking(
    "Cc", "Cf", "Zl", "Zp", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"
)

_SPACES = re.compile("  +")


def single_spaces(text: str) -> str:
    """`text` with one space between words, and none around them."""
    text = text.strip(" ")
    return _SPACES.sub(" ", text) if "  " in text else text


def comparable(text: str) -> str:
    """The letters, marks and numbers of a sentence, case-folded and in compatible form (NFKC).

    Equal for sentences that differ only in spaces, punctuation, case and compatible forms. A
    sentence without any is returned with single spaces.
    """
    # Normalization does not cross a space: words are folded one by one.
    letters = "".join(map(_FOLDED.__getitem__, text.split(" ")))
    return letters or single_spaces(unicodedata.normalize("NFKC", text).translate(_WHITE))


def _folded(word: str) -> str:
    letters = word.translate(_WORDLESS)  # first: NFKC turns some signs into spaces with an accent
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", letters).casefold())
    return folded.translate(_WORDLESS).replace(" ", "")


_FOLDED = BoundedCache(_folded)


def blank_unprinted(text: str) -> str:
    """`text` with each non-printing character replaced by a space."""
    if text.isprintable():  # true of most sentences, and fast
        return text
    return text.translate(_UNPRINTED)


def blank_white(text: str) -> str:
    """As `blank_unprinted`, with all white space (no-break, thin, ...) replaced too."""
    if text.isprintable():
        return text
    return text.translate(_WHITE)
