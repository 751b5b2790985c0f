"""Checks that compare the two sides of a pair: copies, numbers, ends of sentences, meaning."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

import regex
from annotated_types import Interval

from bleuprint.rules.rule import Candidate, Check
from bleuprint.text.numbers import have_equal_numbers
from bleuprint.text.unicode import comparison_key, replace_unprintable

# Of any script, at the end of a word: not in 3.5 or example.org. All marks of a row or none: a row
# is read once.
_MARK = regex.compile(r"(?<![\p{STerm}…])[\p{STerm}…]++(?=[\"'”“’»)\]]*(?:\s|$))|[。！？]+")
_QUESTION = re.compile("[?？؟]")


@dataclass(frozen=True)
class Identical(Check):
    """Drops a pair whose sides differ only in spaces, punctuation and letter case.

    This includes a name or number alone: `Paris` is the same in many languages.
    """

    rank: ClassVar[int] = 10

    def keeps(self, candidate: Candidate) -> bool:
        return comparison_key(candidate.pair.source) != comparison_key(candidate.pair.target)


@dataclass(frozen=True)
class Numerals(Check):
    """Drops a pair if the numbers of its sides differ, in any order.

    Equal numbers in other forms are equal: thousands and decimals, dates, times, fractions, digits
    of other scripts, telephone numbers (text/numbers.py lists them). Numbers in words are not
    found: 3 for `three` drops the pair.
    """

    rank: ClassVar[int] = 80

    def keeps(self, candidate: Candidate) -> bool:
        return have_equal_numbers(*candidate.pair)


@dataclass(frozen=True)
class TerminalPunctuation(Check):
    """Drops a pair if one side has more ends of sentences, or more of questions, than the other.

    Marks that follow each other count as one. An abbreviation (`Dr.`) counts as an end too.
    Armenian's mark of a question, inside a word, counts as none.
    """

    rank: ClassVar[int] = 90

    def keeps(self, candidate: Candidate) -> bool:
        source, target = map(_ends, candidate.pair, candidate.languages)
        return source == target


def _ends(sentence: str, language: str) -> tuple[int, int]:
    """The number of ends of sentences, and of questions among them."""
    if language in ("el", "ell"):
        sentence = sentence.replace(";", "?")
    marks = _MARK.findall(replace_unprintable(sentence))
    return len(marks), sum(bool(_QUESTION.search(mark)) for mark in marks)


@dataclass(frozen=True)
class WordAlignment(Check):
    """Drops a pair if its words explain each other less than `min`.

    The score is the mean over the words of both sides of log(p(word | other side) / p(word)), by
    word translations that the stage learns from the corpus itself; sides that are not translations
    of each other score about -1, those that are about 2.
    """

    rank: ClassVar[int] = 300
    needs_translations: ClassVar[bool] = True
    # the least score is that of an empty side, log 0.05
    min: Annotated[float, Interval(ge=-3, le=10)]

    def keeps(self, candidate: Candidate) -> bool:
        return candidate.alignment_score >= self.min
