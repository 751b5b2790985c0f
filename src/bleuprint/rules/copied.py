"""Checks of what a translation copies: all of it, numbers."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from bleuprint.rules.rule import Candidate, Check
from bleuprint.text.unicode import blank_unprinted, comparable

# Groups of three digits with the same separator throughout, or digits in a row.
_NUMBER = re.compile(r"\d{1,3}([.,'’\u066c\u00a0\u2009\u202f ])\d{3}(?:\1\d{3})*(?!\d)|\d+")
_SEPARATORS = re.compile(r"\D")


@dataclass(frozen=True)
class Identical(Check):
    """Drops a pair whose sides differ only in spaces, punctuation and letter case.

    This includes a name or number alone: `Paris` is the same in many languages.
    """

    rank: ClassVar[int] = 10

    def keeps(self, candidate: Candidate) -> bool:
        return comparable(candidate.pair.source) != comparable(candidate.pair.target)


@dataclass(frozen=True)
class Numbers(Check):
    """Drops a pair if the numbers of its sides differ, in any order.

    A number is a row of digits: 1,000 and 1.000 and 1 000 are 1000; 3.5 and 3,5 are a 3 and a 5;
    full-width and Arabic digits count as 0 to 9. Numbers in words are not found: 3 for `three`, or
    `9 pm` for 21:00, drops the pair.
    """

    rank: ClassVar[int] = 80

    def keeps(self, candidate: Candidate) -> bool:
        return _numbers(candidate.pair.source) == _numbers(candidate.pair.target)


def _numbers(sentence: str) -> Counter[str]:
    text = blank_unprinted(sentence)
    numbers = (_SEPARATORS.sub("", match[0]) for match in _NUMBER.finditer(text))
    return Counter("".join(str(unicodedata.decimal(digit)) for digit in n) for n in numbers)
