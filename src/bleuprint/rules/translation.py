"""A check of what the two sides mean."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Interval

from bleuprint.rules.rule import Candidate, Check


@dataclass(frozen=True)
class AlignmentScore(Check):
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
