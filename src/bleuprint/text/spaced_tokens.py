"""Tokens with the spaces of their sentence: finds and repairs spaces that a detokenizer gets wrong.

The tokenizer of `round_trip` joins its tokens on trial. Where the result has another space than the
sentence, it merges two tokens, or marks one with the sign ␠, until the sentence is reproduced.

A gap is the position between two tokens. Gap i lies between token i and token i + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

from bleuprint.text.detokenizer import (
    APOSTROPHES,
    FRENCH_MARKS,
    HYPHEN_TOKEN,
    LITERAL_HYPHEN_TOKEN,
    QUOTES,
    without_space_sign,
)
from bleuprint.text.moses import Tokens
from bleuprint.text.segmenter import SPACE_SIGN


@dataclass(frozen=True)
class SpacedTokens:
    """Tokens, and the spaces of the sentence between them.

    A gap is the position between two tokens. Gap i follows token i, so there is one less than there
    are tokens.

    Attributes:
        tokens: The tokens.
        spaces: For each gap whether the sentence has a space there.
    """

    tokens: Tokens
    spaces: list[bool]

    @classmethod
    def from_chunks(cls, chunks: Sequence[Sequence[str]]) -> Self:
        """Create the tokens of a sentence with a space after each chunk, except the last one.

        Args:
            chunks: The tokens of each chunk, that is, of each text between two spaces.
        """
        tokens: Tokens = []
        spaces: list[bool] = []
        for chunk in chunks:
            tokens.extend(chunk)
            spaces.extend([False] * (len(chunk) - 1))
            spaces.append(True)
        # Nothing follows the last chunk.
        return cls(tokens, spaces[:-1])

    def wrong_gaps(self, joined: str) -> set[int]:
        """Return the gaps in which a joined sentence has a wrong space, or lacks one.

        A gap is the position between two tokens; gap i follows token i. The function goes through
        the joined sentence token by token, and looks at the character after each token.

        Args:
            joined: The tokens as the detokenizer joins them.
        """
        wrong_gaps = set[int]()
        position = 0
        for gap, has_space in enumerate(self.spaces):
            token = self.tokens[gap]
            # The detokenizer writes the token @-@ as a hyphen, and leaves out the sign of a space.
            position += 1 if token == HYPHEN_TOKEN else len(without_space_sign(token))
            is_joined_with_space = joined[position : position + 1] == " "
            if is_joined_with_space:
                position += 1
            if is_joined_with_space != has_space:
                wrong_gaps.add(gap)
        return wrong_gaps

    def gaps_at_edge_quotes(self) -> set[int]:
        """Return the gaps on both sides of quotes at the edges of a chunk, the text between spaces.

        Whether such a quote opens or closes depends on the rest of the sentence, so the spaces
        beside it cannot be judged in the chunk alone. A quote is at an edge if it comes before the
        first word of the chunk, or after the last one. Here, one more word stands on either side of
        the chunk. A gap is the position between two tokens; gap i follows token i.
        """
        word_indices = [index for index, token in enumerate(self.tokens) if _has_letter(token)]
        # The first and the last word are those around the chunk. Without a word in the chunk,
        # the range below is empty, and all quotes are at an edge.
        has_word_in_chunk = len(word_indices) > 2
        first_in_chunk = word_indices[1] if has_word_in_chunk else 0
        last_in_chunk = word_indices[-2]
        inside = range(first_in_chunk, last_in_chunk)
        gaps = set[int]()
        for index, token in enumerate(self.tokens):
            if token in QUOTES and index not in inside:
                gap_before = index - 1
                gap_after = index
                gaps.update((gap_before, gap_after))
        return gaps

    def gaps_after_commas(self) -> set[int]:
        """Return the gaps after each of the tokens , ; ? !, where a writer may forget the space.

        The detokenizer puts the space there, which is not an error. A gap is the position between
        two tokens; gap i follows token i.
        """
        gaps = set[int]()
        for gap, token in enumerate(self.tokens):
            if token in (",", ";", "?", "!"):
                gaps.add(gap)
        return gaps

    def gaps_with_french_space(self) -> set[int]:
        """Return the gaps with a space that French puts before marks such as ? and inside « ».

        A gap is the position between two tokens; gap i follows token i.
        """
        gaps = set[int]()
        for gap, (token, next_token) in enumerate(pairwise(self.tokens)):
            is_french = token == "«" or next_token in FRENCH_MARKS
            if self.spaces[gap] and is_french:
                gaps.add(gap)
        return gaps

    def repaired(self, wrong_gaps: Sequence[int], only_first: bool) -> Self | None:
        """Return changed tokens, which the detokenizer may join with the right spaces.

        A wrong gap is repaired by merging two tokens, or else by marking a token with the sign ␠,
        which tells the detokenizer to put a space there.

        Args:
            wrong_gaps: The positions between two tokens in which the detokenizer puts a wrong space
                or forgets one, in their order. Gap i follows token i.
            only_first: Whether to repair only the first gap that can be repaired.

        Returns:
            None if no gap can be repaired.
        """
        gaps_to_close = set[int]()
        marked_tokens = dict[int, str]()
        for gap in wrong_gaps:
            gap_to_close = self._gap_to_close(gap)
            if gap_to_close is not None:
                gaps_to_close.add(gap_to_close)
            else:
                marked_tokens.update(self._marked_token(gap))
            is_repaired = bool(gaps_to_close or marked_tokens)
            if only_first and is_repaired:
                break
        if not gaps_to_close and not marked_tokens:
            return None
        return self._with_repairs(gaps_to_close, marked_tokens)

    def _with_repairs(self, gaps_to_close: set[int], marked_tokens: dict[int, str]) -> Self:
        """Replace some tokens, and merge the tokens on both sides of some gaps.

        Args:
            gaps_to_close: The gaps whose tokens are merged. Gap i follows token i.
            marked_tokens: The new form of each token to replace, by the token's index.
        """
        tokens = [marked_tokens.get(0, self.tokens[0])]
        spaces: list[bool] = []
        for gap, has_space in enumerate(self.spaces):
            next_index = gap + 1
            next_token = marked_tokens.get(next_index, self.tokens[next_index])
            if gap in gaps_to_close:
                tokens[-1] = merge_tokens([tokens[-1], next_token])
            else:
                tokens.append(next_token)
                spaces.append(has_space)
        return type(self)(tokens, spaces)

    def _gap_to_close(self, gap: int) -> int | None:
        """Return the gap whose tokens should be merged to repair a wrong gap.

        A gap is the position between two tokens; gap i follows token i.

        Args:
            gap: A gap in which the detokenizer puts a wrong space, or forgets one.

        Returns:
            The wrong gap itself, or the gap before or after it. None if merging does not help.
        """
        if not self.spaces[gap]:
            # The detokenizer puts a space here. A split hyphen cannot be part of a longer token.
            is_at_hyphen = HYPHEN_TOKEN in self.tokens[gap : gap + 2]
            return None if is_at_hyphen else gap
        # The detokenizer forgets a space here, since it joins a mark to the wrong neighbor. The
        # mark is merged with its other neighbor if the sentence has no space between them.
        next_gap = gap + 1
        if self._is_without_space(next_gap) and not _has_letter(self.tokens[gap + 1]):
            return next_gap
        previous_gap = gap - 1
        if self._is_without_space(previous_gap) and not _has_letter(self.tokens[gap]):
            return previous_gap
        return None

    def _is_without_space(self, gap: int) -> bool:
        """Whether a gap exists and the sentence has no space there."""
        return 0 <= gap < len(self.spaces) and not self.spaces[gap]

    def _marked_token(self, gap: int) -> dict[int, str]:
        """Mark the token after or before a gap with the sign ␠, so that the gap keeps its space.

        Only two kinds of tokens can be marked: a mark that is not ASCII, and a word whose
        apostrophe is at the gap. The token after the gap is tried first.

        Args:
            gap: A position between two tokens; gap i follows token i.

        Returns:
            The marked token by its index; empty if neither token can be marked, or the sentence has
            no space in the gap.
        """
        if not self.spaces[gap]:
            return {}
        next_token = self.tokens[gap + 1]
        if _can_be_marked(next_token, character_at_gap=next_token[0]):
            return {gap + 1: f"{SPACE_SIGN}{next_token}"}
        token = self.tokens[gap]
        if _can_be_marked(token, character_at_gap=token[-1]):
            return {gap: f"{token}{SPACE_SIGN}"}
        return {}


def _can_be_marked(token: str, character_at_gap: str) -> bool:
    """Whether a token may carry the sign ␠, which tells the detokenizer to put a space there.

    That is so for a single mark that is not ASCII, and for a word with an apostrophe at that end.

    Args:
        token: The token.
        character_at_gap: Its first or last character, at which the sign would be put.
    """
    is_mark = len(token) == 1 and not token.isascii() and not token.isalnum()
    is_word_with_apostrophe = _has_letter(token) and character_at_gap in APOSTROPHES
    return is_mark or is_word_with_apostrophe


def merge_tokens(tokens: Sequence[str]) -> str:
    """Join tokens to a single one, without spaces.

    The result may happen to be @-@, which the detokenizer would read as a split hyphen. Then it
    becomes ␠@-@, the token for a @-@ that the sentence itself contains.
    """
    merged = ""
    for token in tokens:
        merged += HYPHEN_TOKEN if token == LITERAL_HYPHEN_TOKEN else token
    is_literal_hyphen = merged == HYPHEN_TOKEN and len(tokens) > 1
    return LITERAL_HYPHEN_TOKEN if is_literal_hyphen else merged


def _has_letter(token: str) -> bool:
    """Whether a token contains a letter or digit."""
    return any(character.isalnum() for character in token)
