"""Moses' tokens, except where Moses would not join them again.

sacremoses splits `aujourd’hui`, http://a.b/c, {user_name}, 9:15, 1/2, AT&T and letters with
combining marks, and its detokenizer joins the pieces with spaces. Then no system could reproduce
the reference. The tokenizer of this module makes the round trip through tokens lossless:

- Addresses, placeholders and numbers are patterns that the library does not split.
- A chunk, the text between two spaces, is split only where the detokenizer joins it again. To find
  out, its tokens are joined on trial. Tokens between which a wrong space appears are made one.
- A mark or apostrophe that would lose a space is marked with the sign ␠ (U+2420).

A gap is the position between two tokens. Gap i lies between token i and token i + 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Self

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.detokenizer import (
    APOSTROPHES,
    CURRENCIES,
    ELIDING,
    FRENCH_MARKS,
    HYPHEN,
    LITERAL_HYPHEN,
    QUOTES,
    SPLIT_AT_APOSTROPHES,
    TO_APOSTROPHE,
    Detokenizer,
    without_space_sign,
)
from bleuprint.text.moses import Moses, Tokens
from bleuprint.text.segmenter import SPACE
from bleuprint.text.unicode import replace_white_space

# Addresses, without a mark that ends the sentence.
_ADDRESSES = (
    r"(?<![\w+.-])(?:[a-z][a-z0-9+.-]*://|www\.|mailto:)"
    r"[^\s<>\"«»„“”]*[^\s<>\"'«»„“”.,:;!?)\]}]",
    r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
)
# Placeholders that programs fill in: {x}, {{x}}, ${x}, #{x}, %{x}, %s, %(x)s, %1$s, %.2f. Tags and
# entities of HTML and XML.
_PLACEHOLDERS = (
    r"[$#%]?\{{1,2}[^\s{}]*\}{1,2}",
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*+\d*+(?:\.\d+)?[sdifuxcgeor@](?!\w)|%%",
    r"</?[a-z][^\s<>]*>|</?\d+/?>|&(?:[a-z]\w*|#\d+);",
)
# Times, fractions, dates, decimal numbers: digits with single separators between them.
_NUMBERS = (r"(?<!\d)\d+(?:[.,:/'’٫٬]\d+)+",)
PROTECTED = ["|".join((*_ADDRESSES, *_PLACEHOLDERS, *_NUMBERS))]

# Marks whose spaces depend on the whole sentence: quotes, and currency signs except $.
_SENTENCE_MARKS = QUOTES | CURRENCIES - {"$"}
# Marks the text of a chunk whose tokens depend on the sentence. A sentence contains no line break.
_NEEDS_SENTENCE = "\n"
# How often tokens are joined on trial. Each attempt repairs what the last one left wrong.
_MAX_ATTEMPTS = 8


class RoundTripMoses(Moses):
    """A tokenizer and detokenizer of one language that reproduce the sentence.

    `detokenize(tokenize(sentence))` is the sentence with single spaces, with these exceptions:
    after , ; ? ! a missing space is added; an ASCII mark or quote alone between two spaces loses
    one of them; French has spaces before ? ! : ; % and inside « ».
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        """Create the tokenizer; the arguments are those of `Moses`."""
        # The tokens are escaped here, after their characters have been compared with the chunk.
        super().__init__(language, hyphens, escape=False)
        if language in ELIDING:
            # The library splits after apostrophes in French and Italian only; French rules fit all.
            self._library.lang = "fr"
        self._splits_at_apostrophes = language in SPLIT_AT_APOSTROPHES
        if self._splits_at_apostrophes:
            self._unsplit -= frozenset(APOSTROPHES)
        self._is_french = language == "fr"
        self._joiner = Detokenizer(language)
        self._tokens_by_key = BoundedCache(self._chunk_tokens)
        self._text_by_key = BoundedCache(self._chunk_text)
        self._escape = escape
        self._escaped_tokens = BoundedCache(self._library.escape_xml)

    def tokenize(self, sentence: str) -> Tokens:
        """Return the tokens of a sentence.

        White space of all kinds separates tokens, as do characters that do not print.
        """
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` and `chain` are faster here than a loop in Python.
        tokens = list(chain.from_iterable(map(self._tokens_by_key.__getitem__, keys)))
        if not _SENTENCE_MARKS.isdisjoint(tokens):
            chunks = [self._tokens_by_key[key] for key in keys]
            tokens = self._sentence_tokens(chunks)
        if self._escape:
            return [self._escaped_tokens[token] for token in tokens]
        return tokens

    def tokenize_to_line(self, sentence: str) -> str:
        """Return the tokens of a sentence separated by spaces.

        For most sentences, this joins cached texts and takes two thirds of the time of `tokenize`.
        """
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._cache_keys(text, text.split())
        # A hot loop: `map` is faster here than a comprehension.
        line = " ".join(map(self._text_by_key.__getitem__, keys))
        return " ".join(self.tokenize(sentence)) if _NEEDS_SENTENCE in line else line

    def _chunk_text(self, key: str) -> str:
        """Return the tokens of a chunk separated by spaces.

        If the tokens depend on the sentence or are to be escaped, a mark stands in front of them.
        """
        tokens = self._tokens_by_key[key]
        text = " ".join(tokens)
        needs_sentence = self._escape or not _SENTENCE_MARKS.isdisjoint(tokens)
        return f"{_NEEDS_SENTENCE}{text}" if needs_sentence else text

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the sentence of some tokens; lower-cased text stays lower-cased."""
        if self._escape:
            tokens = self._detokenizer.unescape_xml(" ".join(tokens)).split(" ")
        return self._joiner.detokenize(tokens)

    def _split_by_library(self, chunk: str, next_word: str) -> tuple[str, ...]:
        """Return the tokens of a chunk: those of the library, where they can be joined again.

        Args:
            chunk: The chunk.
            next_word: A word of the same kind as the next chunk.
        """
        # The library splits at ASCII apostrophes only.
        plain = chunk.translate(TO_APOSTROPHE) if self._splits_at_apostrophes else chunk
        # Between two other words, the chunk is at neither end of the sentence.
        sentence = f"x {plain} {next_word}"
        try:
            plain_tokens = self._tokenize_whole(sentence, protected_patterns=PROTECTED)[1:-1]
        except ValueError:
            # The library cannot protect more than 1,000 places.
            return (chunk,)
        rejoined = "".join("-" if token == HYPHEN else token for token in plain_tokens)
        if rejoined != plain:
            # The library has changed characters: it writes a name for several dots.
            return (chunk,)
        tokens = _with_characters_of(chunk, plain_tokens)
        # The words around the chunk show whether the detokenizer would join it to a neighbor.
        with_neighbors = self._joinable_chunk_tokens([("x",), tokens, ("x",)])
        return tuple(with_neighbors[1:-1])

    def _joinable_chunk_tokens(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Make tokens of a chunk one where the detokenizer would put a space inside the chunk.

        Quotes at the edges of the chunk are left to the sentence.

        Args:
            chunks: The tokens of the chunk, between those of two words.

        Returns:
            All tokens. If some space stays wrong after all attempts, each chunk is one token.
        """
        spaced = _SpacedTokens.from_chunks(chunks)
        best_tokens = spaced.tokens
        fewest_wrong: int | None = None
        for _ in range(_MAX_ATTEMPTS):
            wrong = self._wrong_gaps(spaced)
            wrong -= spaced.gaps_at_edge_quotes()
            wrong -= spaced.gaps_after_commas()
            if fewest_wrong is None or len(wrong) < fewest_wrong:
                best_tokens = spaced.tokens
                fewest_wrong = len(wrong)
            repaired = spaced.repaired(sorted(wrong), only_first=False)
            if repaired is None:
                return best_tokens
            spaced = repaired
        return [_make_one(tokens) for tokens in chunks]

    def _sentence_tokens(self, chunks: Sequence[Sequence[str]]) -> Tokens:
        """Return the tokens of a sentence with quotes or currency signs, so that it can be joined.

        Each attempt repairs only the first wrong gap: whether a quote opens or closes depends on
        the quotes before it, so the repair may set the following ones right.

        Args:
            chunks: The tokens of each chunk of the sentence.
        """
        spaced = _SpacedTokens.from_chunks(chunks)
        best_tokens = spaced.tokens
        fewest_wrong: int | None = None
        for _ in range(_MAX_ATTEMPTS):
            wrong = self._wrong_gaps(spaced)
            if fewest_wrong is None or len(wrong) < fewest_wrong:
                best_tokens = spaced.tokens
                fewest_wrong = len(wrong)
            repaired = spaced.repaired(sorted(wrong), only_first=True)
            if repaired is None:
                break
            spaced = repaired
        return best_tokens

    def _wrong_gaps(self, spaced: "_SpacedTokens") -> set[int]:
        """Return the gaps in which the detokenizer puts a wrong space or forgets one.

        A gap is the position between two tokens; gap i follows token i. The spaces of French marks
        do not count, since `detokenize` puts them in.
        """
        wrong = spaced.wrong_gaps(self._joiner.join_without_french_spaces(spaced.tokens))
        if self._is_french:
            wrong -= spaced.gaps_with_french_space()
        return wrong


def _with_characters_of(chunk: str, plain_tokens: Iterable[str]) -> Tokens:
    """Put the characters of a chunk into its tokens, which have ASCII apostrophes instead.

    Args:
        chunk: The chunk.
        plain_tokens: Its tokens. The token @-@ stands for one character, a hyphen.
    """
    tokens = []
    position = 0
    for plain_token in plain_tokens:
        if plain_token == HYPHEN:
            tokens.append(HYPHEN)
            position += 1
        else:
            end = position + len(plain_token)
            tokens.append(chunk[position:end])
            position = end
    return tokens


@dataclass(frozen=True)
class _SpacedTokens:
    """Tokens, and the spaces of the sentence between them.

    Attributes:
        tokens: The tokens.
        spaces: For each gap whether the sentence has a space there. Gap i follows token i, so there
            is one less than there are tokens.
    """

    tokens: Tokens
    spaces: list[bool]

    @classmethod
    def from_chunks(cls, chunks: Sequence[Sequence[str]]) -> Self:
        """Return the tokens of several chunks, with a space after each chunk but the last."""
        tokens: Tokens = []
        spaces: list[bool] = []
        for chunk in chunks:
            tokens.extend(chunk)
            spaces.extend([False] * (len(chunk) - 1))
            spaces.append(True)
        # Nothing follows the last chunk.
        return cls(tokens, spaces[:-1])

    def wrong_gaps(self, joined: str) -> set[int]:
        """Return the gaps in which the detokenizer's sentence has other spaces than the original.

        A gap is the position between two tokens; gap i follows token i.

        Args:
            joined: The tokens as the detokenizer joins them.
        """
        wrong = set[int]()
        position = 0
        for gap, has_space in enumerate(self.spaces):
            token = self.tokens[gap]
            # The detokenizer writes @-@ as a hyphen, and leaves out the sign of a space.
            position += 1 if token == HYPHEN else len(without_space_sign(token))
            is_joined_with_space = joined[position : position + 1] == " "
            if is_joined_with_space:
                position += 1
            if is_joined_with_space != has_space:
                wrong.add(gap)
        return wrong

    def gaps_at_edge_quotes(self) -> set[int]:
        """Return the gaps beside quotes at the edges of a chunk, which is between two words.

        Quotes are at an edge if they come before the first word of the chunk or after its last.
        """
        word_indices = [index for index, token in enumerate(self.tokens) if _has_letter(token)]
        # The first and the last word are those around the chunk. Without a word in the chunk,
        # the range below is empty, and all quotes are at an edge.
        first_in_chunk = word_indices[1] if len(word_indices) > 2 else 0
        last_in_chunk = word_indices[-2]
        inside = range(first_in_chunk, last_in_chunk)
        gaps = set[int]()
        for index, token in enumerate(self.tokens):
            if token in QUOTES and index not in inside:
                gaps.add(index - 1)
                gaps.add(index)
        return gaps

    def gaps_after_commas(self) -> set[int]:
        """Return the gaps after , ; ? ! inside a chunk, where the writer has forgotten a space.

        A gap is the position between two tokens; gap i follows token i.
        """
        gaps = set[int]()
        for gap, token in enumerate(self.tokens):
            if token in (",", ";", "?", "!"):
                gaps.add(gap)
        return gaps

    def gaps_with_french_space(self) -> set[int]:
        """Return the gaps with a space that French has before a mark or after «."""
        gaps = set[int]()
        for gap, (token, next_token) in enumerate(pairwise(self.tokens)):
            is_french = token == "«" or next_token in FRENCH_MARKS
            if self.spaces[gap] and is_french:
                gaps.add(gap)
        return gaps

    def repaired(self, wrong: Sequence[int], only_first: bool) -> Self | None:
        """Return changed tokens, which the detokenizer may join with the right spaces.

        A gap is the position between two tokens. A wrong one is repaired by making the tokens on
        both sides of a gap one, or else by marking a token with the sign of a space, ␠.

        Args:
            wrong: The wrong gaps, in their order.
            only_first: Whether only the first gap that can be repaired is.

        Returns:
            None if no gap can be repaired.
        """
        closed_gaps = set[int]()
        marked_tokens = dict[int, str]()
        for gap in wrong:
            gap_to_close = self._gap_to_close(gap)
            index_to_mark = self._token_to_mark(gap) if gap_to_close is None else None
            if gap_to_close is not None:
                closed_gaps.add(gap_to_close)
            elif index_to_mark is not None:
                token = self.tokens[index_to_mark]
                is_after_gap = index_to_mark > gap
                marked_tokens[index_to_mark] = (
                    f"{SPACE}{token}" if is_after_gap else f"{token}{SPACE}"
                )
            if only_first and (closed_gaps or marked_tokens):
                break
        if not closed_gaps and not marked_tokens:
            return None
        tokens = [marked_tokens.get(0, self.tokens[0])]
        spaces: list[bool] = []
        for gap, has_space in enumerate(self.spaces):
            next_token = marked_tokens.get(gap + 1, self.tokens[gap + 1])
            if gap in closed_gaps:
                tokens[-1] = _make_one([tokens[-1], next_token])
            else:
                tokens.append(next_token)
                spaces.append(has_space)
        return type(self)(tokens, spaces)

    def _gap_to_close(self, gap: int) -> int | None:
        """Return the gap to close, so that the detokenizer's space in a wrong gap becomes right.

        A gap is the position between two tokens. To close it means to make both tokens one.

        Returns:
            None if closing a gap does not help.
        """
        if not self.spaces[gap]:
            # The detokenizer puts a space here. A split hyphen cannot be part of a longer token.
            is_at_hyphen = HYPHEN in self.tokens[gap : gap + 2]
            return None if is_at_hyphen else gap
        # The detokenizer leaves out a space, since it joins a mark to the wrong neighbor. The mark
        # stays at its other neighbor if the sentence has no space between them.
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

    def _token_to_mark(self, gap: int) -> int | None:
        """Return the token to mark with the sign ␠, so that the gap beside it keeps its space.

        That is a mark alone between two spaces that is not ASCII, or a word whose apostrophe is at
        the gap. The token after the gap comes first.

        Returns:
            The index of the token; None if there is no such token.
        """
        if not self.spaces[gap]:
            return None
        next_token = self.tokens[gap + 1]
        if _can_be_marked(next_token, next_token[0]):
            return gap + 1
        token = self.tokens[gap]
        if _can_be_marked(token, token[-1]):
            return gap
        return None


def _can_be_marked(token: str, character_at_gap: str) -> bool:
    """Whether a token may carry the sign of a space at its end or beginning.

    Args:
        token: The token.
        character_at_gap: Its first or last character, at which the sign would be put.
    """
    is_mark = len(token) == 1 and not token.isascii() and not token.isalnum()
    return is_mark or (_has_letter(token) and character_at_gap in APOSTROPHES)


def _make_one(tokens: Sequence[str]) -> str:
    """Return several tokens as one.

    If the result is @-@, it gets the sign of a literal one, since no word was split there.
    """
    joined = ""
    for token in tokens:
        joined += HYPHEN if token == LITERAL_HYPHEN else token
    is_literal_hyphen = joined == HYPHEN and len(tokens) > 1
    return LITERAL_HYPHEN if is_literal_hyphen else joined


def _has_letter(token: str) -> bool:
    """Whether a token contains a letter or digit."""
    return any(character.isalnum() for character in token)
