"""The Moses tokenizer and detokenizer: the tokens of sacremoses, several times as fast.

sacremoses applies about twenty regular expressions to each sentence. Nearly all match within a
chunk, the text between two spaces, so that the tokens of a chunk are the same in every sentence and
are cached. The exceptions:

- a period at the end of a chunk: its tokens depend on the first character of the next chunk, of
  which three kinds are distinguished. The kind is part of the cache key.
- an apostrophe or a comma at the beginning of the sentence, an apostrophe at its end or after a
  chunk that ends in one, and the library's own name for several dots. sacremoses tokenizes such a
  sentence whole.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any

from sacremoses import MosesDetokenizer, MosesTokenizer

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.detokenizer import join_czech_dashes
from bleuprint.text.unicode import replace_white_space

Tokens = list[str]

# Marks a chunk with a final period at the end of the sentence, or before a character that is
# neither a lower-case letter nor a digit.
_AT_END = " A"

_DOTS = "DOTMULTI"
_DIGITS = frozenset("0123456789")


class Moses:
    """The Moses tokenizer and detokenizer of one language.

    `hyphens`: words are split at hyphens, a-b into a @-@ b. `escape`: & < > ' " | [ ] become XML
    entities. A language without abbreviations in the library uses those of English.
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        self._library = _library(language)
        self._whole: Callable[..., Tokens] = partial(
            self._library.tokenize, aggressive_dash_splits=hyphens, escape=escape
        )
        # No expression matches inside a word of these characters.
        self._unsplit = frozenset(self._library.IsAlnum + ("" if hyphens else "-"))
        self._lower = frozenset(self._library.IsLower)
        self._before_digits = frozenset(self._library.NUMERIC_ONLY_PREFIXES)
        self._abbreviations = {*self._library.NONBREAKING_PREFIXES} - self._before_digits
        self._chunks = BoundedCache(self._chunk_tokens)
        self._detokenizer = MosesDetokenizer(language)
        self._escape = escape

    def tokenize(self, sentence: str) -> Tokens:
        """The tokens of a sentence; non-printing characters and all white space separate tokens."""
        # A printable string has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        chunks = text.split()
        if chunks and _is_exception(text, chunks):
            return self._whole(text)
        return list(chain.from_iterable(map(self._chunks.__getitem__, self._keys(text, chunks))))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens; lower-cased text stays lower-cased."""
        text = " ".join(tokens)
        if self._escape:
            text = self._detokenizer.unescape_xml(text)
        if self._detokenizer.lang == "cs":
            text = join_czech_dashes(text)
        sentence: str = self._detokenizer.detokenize(text.split(" "), unescape=False)
        return sentence

    def _keys(self, text: str, chunks: list[str]) -> list[str]:
        """The chunks of a text, those with a final period marked by the chunk after it."""
        first = text.find(".")
        if first == len(text) - 1:  # as most sentences end
            if chunks:
                chunks[-1] += _AT_END
        elif first >= 0:
            for place, (chunk, after) in enumerate(pairwise([*chunks, "A"])):
                if chunk[-1] == ".":
                    chunks[place] = chunk + self._kind(after)
        return chunks

    def _kind(self, after: str) -> str:
        """The mark of a chunk with a final period, by the chunk after it."""
        if after[0] in self._lower:
            return " x"
        return " 1" if after[0] in _DIGITS else _AT_END

    def _chunk_tokens(self, key: str) -> tuple[str, ...]:
        """The tokens of a chunk; the key of one with a final period has a kind after a space."""
        if self._unsplit.issuperset(key):
            return (key,)
        chunk, _, after = key.partition(" ")
        word, mark = chunk[:-1], chunk[-1]
        if word and mark in ",." and self._unsplit.issuperset(word):
            stays = mark == "." and (
                after == "x"
                or word in self._abbreviations
                or (after == "1" and word in self._before_digits)
            )
            return (chunk,) if stays else (word, mark)
        return self._chunk_parts(chunk, after or "x")

    def _chunk_parts(self, chunk: str, after: str) -> tuple[str, ...]:
        # Between two words, the chunk is at neither end of the sentence.
        return tuple(self._whole(f"x {chunk} {after}")[1:-1])


def _is_exception(text: str, chunks: list[str]) -> bool:
    """Whether the tokens of a chunk depend on more than it and the character after it."""
    return (
        chunks[0][0] in "',"
        or chunks[-1][-1] == "'"
        or ("'" in text and "' '" in " ".join(chunks))
        or _DOTS in text
    )


def _library(language: str) -> Any:
    """The library's tokenizer without the sets of thousands of characters it builds at a period."""
    library = MosesTokenizer(language)
    library.islower = frozenset(library.IsLower).issuperset
    alphabetic = frozenset(library.IsAlpha)
    library.isanyalpha = lambda text: not alphabetic.isdisjoint(text)
    return library
