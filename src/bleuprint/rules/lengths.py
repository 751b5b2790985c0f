"""Checks of lengths: of sentences in tokens, of words in characters.

Tokens are those that the corpus's tokeniser makes; words stand between spaces, so that a sentence
of a language without spaces is one word.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bleuprint.rules.rule import Candidate, Check, SideCheck
from bleuprint.runtime.schema import Range
from bleuprint.text.unicode import blank_white


@dataclass(frozen=True)
class Length(Check):
    """Drops a pair with a side of fewer than `min` or more than `max` tokens."""

    rank: ClassVar[int] = 20
    min: Annotated[int, Range(1)]
    max: Annotated[int, Range(1)]

    def __post_init__(self) -> None:
        _check_bounds(self.min, self.max)

    def keeps(self, candidate: Candidate) -> bool:
        if any(_has_more_words(sentence, self.max) for sentence in candidate.pair):
            return False
        return all(self.min <= len(tokens) <= self.max for tokens in candidate.tokens)


@dataclass(frozen=True)
class Ratio(Check):
    """Drops a pair of which one side has more than `max` times the tokens of the other.

    As Moses' clean-corpus-n does; a side without tokens has none of the other's length.
    """

    rank: ClassVar[int] = 30
    max: Annotated[float, Range(1)]

    def keeps(self, candidate: Candidate) -> bool:
        shorter, longer = sorted(len(tokens) for tokens in candidate.tokens)
        return shorter > 0 and longer / shorter <= self.max


@dataclass(frozen=True)
class AverageWord(SideCheck):
    """Drops a pair with a side whose words have fewer than `min` or more than `max` characters.

    That is on average: spelt-out l e t t e r s have few, lists of addresses many.
    """

    rank: ClassVar[int] = 40
    min: Annotated[float, Range(0)]
    max: Annotated[float, Range(1)]

    def __post_init__(self) -> None:
        _check_bounds(self.min, self.max)

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        words = sentence.split()
        return bool(words) and self.min <= len("".join(words)) / len(words) <= self.max


@dataclass(frozen=True)
class LongestWord(SideCheck):
    """Drops a pair with a word of more than `max` characters."""

    rank: ClassVar[int] = 50
    max: Annotated[int, Range(1)]

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        return len(sentence) <= self.max or max(map(len, sentence.split()), default=0) <= self.max


def _check_bounds(low: float, high: float) -> None:
    if low > high:
        raise ValueError(f"min {low} is above max {high}")


def _has_more_words(sentence: str, most: int) -> bool:
    """Whether there are certainly more than so many tokens, seen without making them.

    Every tokeniser makes a token at least of what stands between white space, and to make them
    all of a line that is no sentence, megabytes long, may take minutes.
    """
    return sentence.count(" ") >= most and len(blank_white(sentence).split()) > most
