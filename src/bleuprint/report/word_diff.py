"""Finds the words in which a translation differs from its reference."""

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
    """Some words of a translation or a reference.

    Attributes:
        kind: same if both contain the words, added if only the translation does, missing if only
            the reference does.
        text: The words, with the white space before them.
    """

    kind: Kind
    text: str


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, each with the white space before it."""
    return list(_WORD.findall(text))


def diff_words(translation: str, reference: str) -> Iterator[Piece]:
    """Compare a translation with its reference word by word, and yield the result in pieces.

    A piece consists of words that are in both texts (`same`), only in the translation (`added`) or
    only in the reference (`missing`). For the translation `the big cat` and the reference `the cat
    sleeps`, the pieces are `the` (same), ` big` (added), ` cat` (same) and ` sleeps` (missing).

    Args:
        translation: The translation.
        reference: The reference.
    """
    translation_words = split_words(translation)
    reference_words = split_words(reference)
    # Words include the white space before them. Without it, it does not count as a difference.
    bare_translation = list(map(str.strip, translation_words))
    bare_reference = list(map(str.strip, reference_words))
    # With `autojunk`, difflib would ignore frequent words of long texts.
    matcher = SequenceMatcher(None, bare_reference, bare_translation, autojunk=False)
    # The operations turn the reference into the translation. Each of them replaces some words of
    # the reference, from ref_start to ref_end, by words of the translation, from start to end.
    for operation, ref_start, ref_end, start, end in matcher.get_opcodes():
        words_of_translation = "".join(translation_words[start:end])
        words_of_reference = "".join(reference_words[ref_start:ref_end])
        if operation == "equal":
            yield Piece("same", words_of_translation)
            continue
        # Words may be replaced by others, or be only missing, or only added.
        if words_of_reference:
            yield Piece("missing", words_of_reference)
        if words_of_translation:
            yield Piece("added", words_of_translation)
