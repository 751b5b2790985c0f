"""Characters that are not part of a sentence, and how a text is rid of them."""

import re
import unicodedata

# Zero-width joiner and non-joiner: not printed, but part of the spelling in several scripts.
_JOINERS = frozenset({0x200C, 0x200D})


class _Blanking(dict[int, int]):
    """A table for str.translate: characters of some Unicode categories become spaces.

    It is filled as characters turn up, since listing all of Unicode costs more than a short text.
    """

    def __init__(self, *categories: str) -> None:
        super().__init__()
        self._categories = frozenset(categories)

    def __missing__(self, code: int) -> int:
        blank = unicodedata.category(chr(code)) in self._categories and code not in _JOINERS
        self[code] = ord(" ") if blank else code
        return self[code]


# Controls (tab, carriage return, the separators \x1c to \x1f, U+0085), formats (byte order mark,
# zero-width space, soft hyphen, directions) and the line and paragraph separators.
_UNPRINTED = _Blanking("Cc", "Cf", "Zl", "Zp")
_WHITE = _Blanking("Cc", "Cf", "Zl", "Zp", "Zs")
_WORDLESS = _Blanking("Cc", "Cf", "Zl", "Zp", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")

_SPACES = re.compile(" +")


def single_spaces(text: str) -> str:
    """`text` with one space between words, and none around them."""
    return _SPACES.sub(" ", text).strip(" ")


def comparable(text: str) -> str:
    """What stays of a sentence whatever spaces, punctuation, case and compatible forms it has.

    Two sentences that differ in their words differ here too; one of nothing but punctuation stays.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return single_spaces(folded.translate(_WORDLESS)) or single_spaces(folded.translate(_WHITE))


def blank_unprinted(text: str) -> str:
    """`text` with each unprinted character replaced by a space."""
    if text.isprintable():  # most are, and that is seen at once
        return text
    return text.translate(_UNPRINTED)


def blank_white(text: str) -> str:
    """As `blank_unprinted`, with white space of every kind (no-break, thin, ...) replaced too."""
    if text.isprintable():
        return text
    return text.translate(_WHITE)
