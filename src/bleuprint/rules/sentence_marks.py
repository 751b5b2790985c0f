"""A check of the marks that end sentences."""

import re
from dataclasses import dataclass
from typing import ClassVar

from bleuprint.rules.rule import Candidate, Check
from bleuprint.text.unicode import blank_unprinted

# At the end of a word: not in 3.5 or example.org. All marks of a row or none: a row is read once.
_MARK = re.compile(r"(?<![.!?…])[.!?…]++(?=[\"'”“’»)\]]*(?:\s|$))|[。！？]+")
_QUESTION = re.compile("[?？]")


@dataclass(frozen=True)
class SentenceMarks(Check):
    """Drops a pair if one side has more ends of sentences, or more of questions, than the other.

    Marks that follow each other count as one. An abbreviation (`Dr.`) counts as an end too.
    """

    rank: ClassVar[int] = 90

    def keeps(self, candidate: Candidate) -> bool:
        source, target = map(_ends, candidate.pair)
        return source == target


def _ends(sentence: str) -> tuple[int, int]:
    """The number of ends of sentences, and of questions among them."""
    marks = _MARK.findall(blank_unprinted(sentence))
    return len(marks), sum(bool(_QUESTION.search(mark)) for mark in marks)
