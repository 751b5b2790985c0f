"""Characters that are not part of a sentence, and how a text is rid of them."""

import re
import unicodedata

from bleuprint.runtime.memoize import BoundedCache

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
_WORDLESS = _Blanking(
    "Cc", "Cf", "Zl", "Zp", "Zs", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"
)

_SPACES = re.compile("  +")


def single_spaces(text: str) -> str:
    """`text` with one space between words, and none around them."""
    text = text.strip(" ")
    return _SPACES.sub(" ", text) if "  " in text else text


def comparable(text: str) -> str:
    """The letters, marks and numbers of a sentence, whatever case and compatible form it has.

    Two sentences that may become the same tokens agree here, however they are spaced and
    punctuated. One of none of these is compared as it is, but for spaces.
    """
    # A space parts what normalising would join: the words may be taken one by one.
    found = "".join(map(_FOLDED.__getitem__, text.split(" ")))
    return found or single_spaces(unicodedata.normalize("NFKC", text).translate(_WHITE))


def _folded(word: str) -> str:
    letters = word.translate(_WORDLESS)  # first: some signs become spaces with an accent in NFKC
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", letters).casefold())
    return folded.translate(_WORDLESS).replace(" ", "")


_FOLDED = BoundedCache(_folded)


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
