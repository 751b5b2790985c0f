"""Checks of lengths: of sentences in tokens, of words in characters.

Tokens are those of the corpus's tokenizer; words are separated by spaces, so that a sentence in a
language without spaces is one word.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge

from bleuprint.rules.rule import Candidate, Check, SideCheck
from bleuprint.text.unicode import replace_white_space


@dataclass(frozen=True)
class Length(Check):
    """Drops a pair with a side of fewer than `min` or more than `max` tokens."""

    rank: ClassVar[int] = 20
    max: Annotated[int, Ge(1)]
    min: Annotated[int, Ge(1)] = 1

    def __post_init__(self) -> None:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")

    def keeps(self, candidate: Candidate) -> bool:
        (least, most), (other, most_other) = candidate.bounds
        if self.min <= least and self.min <= other and max(most, most_other) <= self.max:
            return True
        if any(_has_more_words(sentence, self.max) for sentence in candidate.pair):
            return False
        return all(self.min <= len(tokens) <= self.max for tokens in candidate.tokens)


@dataclass(frozen=True)
class LengthRatio(Check):
    """Drops a pair if one side has more than `max` times the tokens of the other.

    As Moses' clean-corpus-n does; a pair with a side without tokens is dropped.
    """

    rank: ClassVar[int] = 30
    max: Annotated[float, Ge(1)]

    def keeps(self, candidate: Candidate) -> bool:
        (least, most), (other, most_other) = candidate.bounds
        if least and other and max(most / other, most_other / least) <= self.max:
            return True
        shorter, longer = sorted(len(tokens) for tokens in candidate.tokens)
        return shorter > 0 and longer / shorter <= self.max


@dataclass(frozen=True)
class LongWord(SideCheck):
    """Drops a pair with a word of more than `max` characters."""

    rank: ClassVar[int] = 50
    max: Annotated[int, Ge(1)]

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        if len(sentence) <= self.max:
            return True
        return max(map(len, replace_white_space(sentence).split()), default=0) <= self.max


def _has_more_words(sentence: str, most: int) -> bool:
    """Whether a sentence has more than `most` words, and so at least as many tokens.

    Tokenizing a line of several megabytes may take minutes.
    """
    return sentence.count(" ") >= most and len(replace_white_space(sentence).split()) > most
