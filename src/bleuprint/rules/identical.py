"""A check for pairs that were not translated."""

from dataclasses import dataclass
from typing import ClassVar

from bleuprint.rules.rule import Candidate, Check
from bleuprint.text.unicode import comparable


@dataclass(frozen=True)
class Identical(Check):
    """Drops a pair whose sides differ only in spaces, punctuation and letter case.

    This includes a name or number alone: `Paris` is the same in many languages.
    """

    rank: ClassVar[int] = 10

    def keeps(self, candidate: Candidate) -> bool:
        return comparable(candidate.source) != comparable(candidate.target)
