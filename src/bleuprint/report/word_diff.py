"""The words in which a translation differs from its reference."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

import regex

Kind = Literal["same", "added", "missing"]

# Scripts that do not separate words.
_JOINED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# A word, a character of such a script, or any other grapheme, each with the white space before it.
_WORD = regex.compile(
    rf"\s*(?:{_JOINED}\p{{M}}*"
    rf"|[[\p{{L}}\p{{N}}]--{_JOINED}]"
    rf"[[\p{{L}}\p{{M}}\p{{N}}\u200c\u200d'’-]--{_JOINED}]*(?<!['’-])|\X)|\s+",
    regex.V1,
)


class Piece(NamedTuple):
    """Words that both have, that only the translation has, or only the reference."""

    kind: Kind
    text: str


def words(text: str) -> list[str]:
    """The words and signs of a text, each with the white space before it."""
    return list(_WORD.findall(text))


def differences(translation: str, reference: str) -> Iterator[Piece]:
    """Pieces that turn the reference into the translation; neighbors are of different kinds.

    All but the missing ones together are the translation.
    """
    ours, theirs = words(translation), words(reference)
    ours_bare, theirs_bare = ([word.strip() for word in side] for side in (ours, theirs))
    matcher = SequenceMatcher(None, theirs_bare, ours_bare, autojunk=False)
    for kind, first, last, start, stop in matcher.get_opcodes():
        missing, added = "".join(theirs[first:last]), "".join(ours[start:stop])
        if kind == "equal":
            yield Piece("same", added)
            continue
        if missing:
            yield Piece("missing", missing)
        if added:
            yield Piece("added", added)
