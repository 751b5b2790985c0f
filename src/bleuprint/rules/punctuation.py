"""Moses' punctuation normaliser: quotation marks, dashes, no-break spaces written one way."""

import re
from functools import cache
from typing import Any

from bleuprint.text.unicode import blank_unprinted

# A printable sentence without any of these stays as it is: each of the library's rules, in every
# language, needs one of them to change anything.
_CHARACTERS = re.compile('[()"`´„“”–—‘’‚…«»\u00a0]')
_SEQUENCES = ("  ", " %", " :", " ;", "''")


def normalize_punctuation(sentence: str, language: str) -> str:
    """The sentence with its punctuation as Moses' normalize-punctuation writes it.

    Unprinted characters become spaces. Most no-break spaces stay: the rules need them.
    """
    text = blank_unprinted(sentence)
    if _CHARACTERS.search(text) or any(sequence in text for sequence in _SEQUENCES):
        normalized: str = _normalizer(language).normalize(text)
        return normalized
    return text.strip()


@cache
def _normalizer(language: str) -> Any:
    # Every stage has this module among its rules; the library takes a quarter of a second to load.
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(language)
