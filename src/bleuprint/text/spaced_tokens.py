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
        """Create an object from the tokens of each chunk, that is, of each text between two spaces.

        For example, the chunks `[["Oh", ","], ["yes"]]` are the sentence "Oh, yes". They give the
        tokens `["Oh", ",", "yes"]` and the spaces `[False, True]`.
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
        """Compare a joined text with the sentence; return the gaps at which their spaces differ.

        A gap is the position between two tokens; gap i follows token i. For the sentence "Oh, yes"
        with the tokens `Oh`, `,` and `yes`, the joined text "Oh , yes" differs at gap 0.

        Args:
            joined: The text to which the detokenizer joins the tokens.
        """
        wrong_gaps = set[int]()
        position = 0
        for gap, has_space in enumerate(self.spaces):
            token = self.tokens[gap]
            # The detokenizer writes the token @-@ as a hyphen of one character, and leaves out the
            # sign ␠.
            position += 1 if token == HYPHEN_TOKEN else len(without_space_sign(token))
            is_joined_with_space = joined[position : position + 1] == " "
            if is_joined_with_space:
                position += 1
            if is_joined_with_space != has_space:
                wrong_gaps.add(gap)
        return wrong_gaps

    def gaps_at_edge_quotes(self) -> set[int]:
        """Return the gaps before and after each quote at the edges of a chunk.

        A chunk is the text between two spaces, such as `"so?"`. Whether a quote at its edge opens
        or closes depends on the rest of the sentence, so the spaces beside the quote cannot be
        judged in the chunk alone. A quote is at an edge if it comes before the first word of the
        chunk, or after the last one. Gap i is the position after token i.

        The tokens must be those of one chunk with one more word on either side.
        """
        word_indices = [
            index for index, token in enumerate(self.tokens) if _has_letter_or_digit(token)
        ]
        # Leave out the words on either side of the chunk.
        word_indices_in_chunk = word_indices[1:-1]
        between_words = range(0)  # In a chunk without words, all quotes are at an edge.
        if word_indices_in_chunk:
            between_words = range(word_indices_in_chunk[0], word_indices_in_chunk[-1])
        gaps = set[int]()
        for index, token in enumerate(self.tokens):
            if token in QUOTES and index not in between_words:
                gap_before = index - 1
                gap_after = index
                gaps.update((gap_before, gap_after))
        return gaps

    def gaps_after_commas(self) -> set[int]:
        """Return the gaps after the tokens , ; ? and !, where a sentence may lack the space.

        The detokenizer adds this space, which counts as a correction and not as an error. A gap is
        the position between two tokens; gap i follows token i.
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

    def repaired(self, wrong_gaps: Sequence[int], stops_after_first: bool) -> Self | None:
        """Change tokens so that the detokenizer joins them with the spaces of the sentence.

        There are two ways to repair a wrong gap. Two tokens are merged, so that no space can come
        between them. If that does not help, a token is marked with the sign ␠, by which the
        detokenizer adds a space.

        Args:
            wrong_gaps: The positions between two tokens at which the detokenizer adds a wrong space
                or omits one, in ascending order. Gap i follows token i.
            stops_after_first: Whether to repair only the first gap that can be repaired.

        Returns:
            The changed tokens with their spaces; None if no gap can be repaired.
        """
        gaps_to_close = set[int]()
        marked_tokens = dict[int, str]()
        for gap in wrong_gaps:
            gap_to_close = self._gap_to_close(gap)
            if gap_to_close is not None:
                gaps_to_close.add(gap_to_close)
            else:
                marked_tokens.update(self._marked_token(gap))
            has_repair = bool(gaps_to_close or marked_tokens)
            if stops_after_first and has_repair:
                break
        if gaps_to_close or marked_tokens:
            return self._with_repairs(gaps_to_close, marked_tokens)
        return None

    def _with_repairs(self, gaps_to_close: set[int], marked_tokens: dict[int, str]) -> Self:
        """Return a copy in which some tokens are marked and some neighbors are merged.

        Args:
            gaps_to_close: Gap i lies between tokens i and i + 1, which become one token.
            marked_tokens: For each token to mark, its marked form, by the token's index.
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
        """Return the gap whose two tokens should be merged to repair a wrong gap.

        A gap is the position between two tokens; gap i lies between tokens i and i + 1.

        Args:
            gap: A gap at which the detokenizer adds a wrong space, or omits one.

        Returns:
            The wrong gap itself, or the gap before or after it. None if merging does not help.
        """
        token, next_token = self.tokens[gap : gap + 2]
        has_extra_space = not self.spaces[gap]
        if has_extra_space:
            # The token for a split hyphen, @-@, must stay separate to be recognized.
            is_at_hyphen = HYPHEN_TOKEN in (token, next_token)
            return None if is_at_hyphen else gap
        # The detokenizer omits a space here, since it joins a mark to the wrong neighbor. The mark
        # is merged with its other neighbor if the sentence has no space between them.
        next_gap = gap + 1
        if self._is_without_space(next_gap) and not _has_letter_or_digit(next_token):
            return next_gap
        previous_gap = gap - 1
        if self._is_without_space(previous_gap) and not _has_letter_or_digit(token):
            return previous_gap
        return None

    def _is_without_space(self, gap: int) -> bool:
        """Return whether a gap exists and the sentence has no space there."""
        return 0 <= gap < len(self.spaces) and not self.spaces[gap]

    def _marked_token(self, gap: int) -> dict[int, str]:
        """Mark the token after or before a gap with the sign ␠, so that the gap keeps its space.

        Only two kinds of tokens can be marked: a punctuation mark that is not ASCII, and a word
        whose apostrophe is at the gap. The token after the gap is tried first.

        Args:
            gap: A position between two tokens; gap i follows token i.

        Returns:
            The marked token by its index, such as `{3: "␠'tis"}`. Empty if neither token can be
            marked, or if the sentence has no space at the gap.
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
    """Return whether a token may carry the sign ␠, by which the detokenizer adds a space there.

    The detokenizer recognizes the sign only on a single punctuation mark that is not ASCII, and at
    the apostrophe of a word such as 'tis or po'.

    Args:
        token: The token.
        character_at_gap: Its first or last character, next to which the sign would be written.
    """
    is_mark = len(token) == 1 and not token.isascii() and not token.isalnum()
    is_word_with_apostrophe = _has_letter_or_digit(token) and character_at_gap in APOSTROPHES
    return is_mark or is_word_with_apostrophe


def merge_tokens(tokens: Sequence[str]) -> str:
    """Join tokens to a single token without spaces: `www`, `.` and `b` become `www.b`.

    A sentence may contain the text @-@. As a token it is written ␠@-@, since the token @-@ means a
    hyphen at which a word was split. Inside a longer token there is no such danger.
    """
    merged = ""
    for token in tokens:
        merged += HYPHEN_TOKEN if token == LITERAL_HYPHEN_TOKEN else token
    is_literal_hyphen = merged == HYPHEN_TOKEN and len(tokens) > 1
    return LITERAL_HYPHEN_TOKEN if is_literal_hyphen else merged


def _has_letter_or_digit(token: str) -> bool:
    """Return whether a token contains a letter or digit."""
    return any(character.isalnum() for character in token)
