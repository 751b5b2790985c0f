"""Moses' tokens, except where Moses would not join them again.

sacremoses splits `aujourd’hui`, http://a.b/c, {user_name}, 9:15, 1/2, AT&T and letters with
combining marks, and joins the pieces with spaces. Here addresses, placeholders and numbers are its
protected patterns, and a chunk, the text between two spaces, is split only where the detokenizer
joins it again.
"""

from collections.abc import Sequence
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
    unmarked,
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
# What programs fill in, {x}, {{x}}, ${x}, #{x}, %{x}, %s, %(x)s, %1$s, %.2f, tags and entities.
_PLACEHOLDERS = (
    r"[$#%]?\{{1,2}[^\s{}]*\}{1,2}",
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*+\d*+(?:\.\d+)?[sdifuxcgeor@](?!\w)|%%",
    r"</?[a-z][^\s<>]*>|</?\d+/?>|&(?:[a-z]\w*|#\d+);",
)
# Times, fractions, dates, decimal numbers: digits with single separators between them.
_NUMBERS = (r"(?<!\d)\d+(?:[.,:/'’٫٬]\d+)+",)
PROTECTED = ["|".join((*_ADDRESSES, *_PLACEHOLDERS, *_NUMBERS))]

# Marks whose spaces depend on the sentence: quotes, and signs of currencies but for $.
_BY_SENTENCE = QUOTES | CURRENCIES - {"$"}
# Cannot occur in a sentence.
_APART = "\n"
# Attempts to find tokens that the detokenizer joins, each with what the last one left apart.
_ATTEMPTS = 8


class RoundTripMoses(Moses):
    """The tokenizer and detokenizer of one language, with the options of Moses.

    `detokenize(tokenize(sentence))` is the sentence with single spaces, except: a space forgotten
    after , ; ? ! is put in; an ASCII mark or quote alone between spaces loses one of them; French
    has spaces before ? ! : ; % and inside « ». A mark that is not ASCII and stands alone between
    spaces is written with one, ␠، (U+2420), as is a word whose apostrophe would lose a space, po'␠.
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        super().__init__(language, hyphens, escape=False)
        if language in ELIDING:
            # the library has rules for English, French and Italian only
            self._library.lang = "fr"
        self._splits_at_apostrophes = language in SPLIT_AT_APOSTROPHES
        if self._splits_at_apostrophes:
            self._unsplit -= frozenset(APOSTROPHES)
        self._french = language == "fr"
        self._joiner = Detokenizer(language)
        self._chunks = BoundedCache(self._chunk_tokens)
        self._texts = BoundedCache(self._chunk_text)
        self._escape = escape
        self._escaped = BoundedCache(self._library.escape_xml)

    def tokenize(self, sentence: str) -> Tokens:
        """The tokens of a sentence; non-printing characters and all white space separate tokens."""
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        keys = self._keys(text, text.split())
        tokens = list(chain.from_iterable(map(self._chunks.__getitem__, keys)))
        if not _BY_SENTENCE.isdisjoint(tokens):
            tokens = self._joinable([*map(self._chunks.__getitem__, keys)], one_by_one=True)
        return [*map(self._escaped.__getitem__, tokens)] if self._escape else tokens

    def tokenize_to_line(self, sentence: str) -> str:
        """The tokens of a sentence separated by spaces, in two thirds of the time."""
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        found = " ".join(map(self._texts.__getitem__, self._keys(text, text.split())))
        return " ".join(self.tokenize(sentence)) if _APART in found else found

    def _chunk_text(self, key: str) -> str:
        """The tokens of a chunk separated by spaces, after a mark if the sentence decides."""
        tokens = self._chunks[key]
        apart = self._escape or not _BY_SENTENCE.isdisjoint(tokens)
        return (_APART if apart else "") + " ".join(tokens)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens; lower-cased text stays lower-cased."""
        if self._escape:
            tokens = self._detokenizer.unescape_xml(" ".join(tokens)).split(" ")
        return self._joiner.detokenize(tokens)

    def _chunk_parts(self, chunk: str, after: str) -> tuple[str, ...]:
        plain = chunk.translate(TO_APOSTROPHE) if self._splits_at_apostrophes else chunk
        try:
            split = self._whole(f"x {plain} {after}", protected_patterns=PROTECTED)[1:-1]
        except ValueError:  # the library protects no more than 1,000 spans
            return (chunk,)
        if "".join("-" if token == HYPHEN else token for token in split) != plain:
            return (chunk,)  # its name for several dots, DOTMULTI
        tokens, place = list[str](), 0
        for token in split:
            tokens.append(token if token == HYPHEN else chunk[place : place + len(token)])
            place += 1 if token == HYPHEN else len(token)
        return tuple(self._joinable([("x",), tokens, ("x",)])[1:-1])

    def _joinable(self, parts: Sequence[Sequence[str]], one_by_one: bool = False) -> Tokens:
        """The tokens of chunks, joined where the detokenizer would put a space inside a chunk.

        With `one_by_one`, for a sentence, the first of them, which may set the quotes after it
        right; else all, but for quotes at the edges of a chunk, which are left to the sentence.
        """
        sequence = _Sequence.of(parts)
        best, fewest = sequence.tokens, None
        for _ in range(_ATTEMPTS):
            wrong = sequence.wrong(self._joiner.joined(sequence.tokens))
            if self._french:
                wrong -= sequence.beside_french_marks()
            if not one_by_one:
                wrong -= sequence.at_edge_quotes() | sequence.after_commas()
            if fewest is None or len(wrong) < fewest:
                best, fewest = sequence.tokens, len(wrong)
            changed = sequence.changed(sorted(wrong), one_by_one)
            if changed is None:
                return best
            sequence = changed
        return best if one_by_one else [_in_one(part) for part in parts]


@dataclass(frozen=True)
class _Sequence:
    """Tokens, and for each but the last whether a space follows it in the sentence."""

    tokens: Tokens
    spaces: list[bool]

    @classmethod
    def of(cls, parts: Sequence[Sequence[str]]) -> Self:
        """Those of chunks with spaces between them."""
        spaces = [last for part in parts for last in [False] * (len(part) - 1) + [True]]
        return cls(list(chain.from_iterable(parts)), spaces[:-1])

    def wrong(self, joined: str) -> set[int]:
        """The places, tokens before a space, where the spaces of the joined sentence differ."""
        found, end = set[int](), 0
        for place, space in enumerate(self.spaces):
            token = self.tokens[place]
            end += 1 if token == HYPHEN else len(unmarked(token))
            joined_space = joined[end : end + 1] == " "
            end += joined_space
            if joined_space != space:
                found.add(place)
        return found

    def at_edge_quotes(self) -> set[int]:
        """The places beside quotes before the first word of a chunk or after its last."""
        words = [place for place, token in enumerate(self.tokens) if _is_word(token)]
        first, last = words[1] if len(words) > 2 else 0, words[-2]
        inside = range(first, last)
        beside = set[int]()
        for place, token in enumerate(self.tokens):
            if token in QUOTES and place not in inside:
                beside |= {place - 1, place}
        return beside

    def after_commas(self) -> set[int]:
        """The places after , ; ? !, where the space was forgotten."""
        return {place for place, token in enumerate(self.tokens) if token in (",", ";", "?", "!")}

    def beside_french_marks(self) -> set[int]:
        """The places of spaces that French puts before these marks and after «."""
        return {
            place
            for place, (before, after) in enumerate(pairwise(self.tokens))
            if self.spaces[place] and (before == "«" or after in FRENCH_MARKS)
        }

    def changed(self, wrong: Sequence[int], one_by_one: bool) -> Self | None:
        """The tokens changed so that the spaces at these places come right; None if none can be."""
        joined, marked = set[int](), dict[int, str]()
        for place in wrong:
            if (found := self._to_join(place)) is not None:
                joined.add(found)
            elif (alone := self._to_mark(place)) is not None:
                token = self.tokens[alone]
                marked[alone] = f"{SPACE}{token}" if alone > place else f"{token}{SPACE}"
            if one_by_one and (joined or marked):
                break
        if not joined and not marked:
            return None
        tokens, spaces = [marked.get(0, self.tokens[0])], list[bool]()
        for place, token in enumerate(self.tokens[1:]):
            token = marked.get(place + 1, token)
            if place in joined:
                tokens[-1] = _in_one([tokens[-1], token])
            else:
                tokens.append(token)
                spaces.append(self.spaces[place])
        return type(self)(tokens, spaces)

    def _to_join(self, place: int) -> int | None:
        """The place to join at so that the space at `place` comes right, if there is one."""
        if not self.spaces[place]:
            return place if HYPHEN not in self.tokens[place : place + 2] else None
        # A mark stands at the wrong word: it stays at the other.
        for mark, other in ((place + 1, place + 1), (place, place - 1)):
            inside = 0 <= other < len(self.spaces) and not self.spaces[other]
            if inside and not _is_word(self.tokens[mark]):
                return other
        return None

    def _to_mark(self, place: int) -> int | None:
        """A mark between spaces, or a word with an apostrophe, that would lose the one at `place`.

        Not an ASCII mark.
        """
        if not self.spaces[place]:
            return None
        for mark, outer in ((place + 1, 0), (place, -1)):
            token = self.tokens[mark]
            if len(token) == 1 and not (token.isascii() or token.isalnum()):
                return mark
            if _is_word(token) and token[outer] in APOSTROPHES:
                return mark
        return None


def _in_one(tokens: Sequence[str]) -> str:
    """Tokens as one; a @-@ of the sentence is marked, since it is no hyphen that was split."""
    joined = "".join(HYPHEN if token == LITERAL_HYPHEN else token for token in tokens)
    return LITERAL_HYPHEN if joined == HYPHEN and len(tokens) > 1 else joined


def _is_word(token: str) -> bool:
    return any(map(str.isalnum, token))
