"""Moses' punctuation normalizer for quotation marks, dashes and no-break spaces."""

import re
from functools import cache
from typing import Any

from bleuprint.text.unicode import blank_unprinted

# Every rule of the library, in every language, needs one of these: other printable sentences do not
# change.
_CHARACTERS = re.compile('[()"`´„“”–—‘’‚…«»\u00a0]')
_SEQUENCES = ("  ", " %", " :", " ;", "''")


def normalize_punctuation(sentence: str, language: str) -> str:
    """The sentence after Moses' normalize-punctuation.

    Non-printing characters become spaces. Most no-break spaces are kept: the rules need them.
    """
    text = blank_unprinted(sentence)
    if _CHARACTERS.search(text) or any(sequence in text for sequence in _SEQUENCES):
        normalized: str = _normalizer(language).normalize(text)
        return normalized
    return text.strip()


@cache
def _normalizer(language: str) -> Any:
    # imported here: every stage loads this module, and the library takes a quarter of a second
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(language)
