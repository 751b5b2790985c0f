"""Checks of lengths: of sentences in tokens, of words in characters.

Tokens come from the corpus's tokenizer; words are separated by spaces, so that a sentence in a
language without spaces is one word.

Tokenizing is slow. Where the bounds of a candidate, the smallest and the largest numbers of tokens
that its sides may have, are enough for a decision, it is not tokenized.
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
        """Raise ValueError if no length is allowed."""
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether both sides have at least `min` and at most `max` tokens.

        Tokenizing is slow, so two faster tests come first, which decide most pairs. `bounds` are a
        lower and an upper limit for the number of tokens, known without tokenizing. And a sentence
        has at least as many tokens as words.
        """
        (source_min, source_max), (target_min, target_max) = candidate.bounds
        is_surely_long_enough = self.min <= source_min and self.min <= target_min
        is_surely_short_enough = source_max <= self.max and target_max <= self.max
        if is_surely_long_enough and is_surely_short_enough:
            return True
        # This also avoids tokenizing a line of several megabytes, which may take minutes.
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
        """Return whether the longer side has at most `max` times the tokens of the shorter side.

        Tokenizing is slow, so a faster test comes first. `bounds` are a lower and an upper limit
        for the number of tokens of each side, known without tokenizing.
        """
        (source_min, source_max), (target_min, target_max) = candidate.bounds
        if source_min > 0 and target_min > 0:
            largest_possible_ratio = max(source_max / target_min, target_max / source_min)
            if largest_possible_ratio <= self.max:
                return True
        source_tokens, target_tokens = candidate.tokens
        shorter = min(len(source_tokens), len(target_tokens))
        longer = max(len(source_tokens), len(target_tokens))
        return shorter > 0 and longer / shorter <= self.max


@dataclass(frozen=True)
class LongWord(SideCheck):
    """Drops a pair with a word of more than `max` characters."""

    rank: ClassVar[int] = 50
    max: Annotated[int, Ge(1)]

    def passes(self, sentence: str, language: str) -> bool:  # noqa: ARG002
        """Return whether no word of a sentence has more than `max` characters."""
        if len(sentence) <= self.max:
            return True  # No word is longer than its sentence.
        words = replace_white_space(sentence).split()
        longest = max(map(len, words), default=0)
        return longest <= self.max


def _has_more_words(sentence: str, max_words: int) -> bool:
    """Return whether a sentence has more than `max_words` words, which are separated by spaces."""
    # Counting spaces is fast. More than n words have at least n spaces between them.
    if sentence.count(" ") < max_words:
        return False
    words = replace_white_space(sentence).split()
    return len(words) > max_words
