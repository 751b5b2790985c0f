"""The Moses tokenizer and detokenizer: the tokens of sacremoses, several times as fast.

sacremoses applies about twenty regular expressions to each sentence. Nearly all of them match
within a chunk, the text between two spaces. So the tokens of a chunk are the same in every
sentence, and they are cached by chunk. The exceptions:

- a period at the end of a chunk: whether it is split off depends on the first character of the next
  chunk, of which there are three kinds. The kind is part of the cache key.
- an apostrophe or comma at the beginning of the sentence, an apostrophe at its end or after a chunk
  that ends in one, and the name that the library gives to several dots. sacremoses tokenizes such a
  sentence as a whole.
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

# The kinds of a chunk, by its first character, each written as a character of that kind: a
# lower-case letter, a digit, or another character. The cache key of a chunk with a final period
# ends with a space and the kind of the next chunk: "etc. x".
_LOWER_CASE = "x"
_DIGIT = "1"
_OTHER = "A"
# The end of the key of a chunk at the end of the sentence, which is treated as before "other".
_KEY_END_AT_SENTENCE_END = f" {_OTHER}"

# sacremoses replaces several dots by this name while it tokenizes.
_DOTS_NAME = "DOTMULTI"
_DIGITS = frozenset("0123456789")


class Moses:
    """The Moses tokenizer and detokenizer of one language.

    A language whose abbreviations the library does not know uses those of English.
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        """Create the library's tokenizer and detokenizer.

        Args:
            language: The code of the language.
            hyphens: Whether words are split at hyphens, a-b into a @-@ b.
            escape: Whether & < > ' " | [ ] become XML entities.
        """
        self._library = _make_library(language)
        self._tokenize_whole: Callable[..., Tokens] = partial(
            self._library.tokenize, aggressive_dash_splits=hyphens, escape=escape
        )
        # A chunk of these characters alone is one token.
        self._unsplit = frozenset(self._library.IsAlnum + ("" if hyphens else "-"))
        self._lower_case = frozenset(self._library.IsLower)
        # Abbreviations that keep their period only before a number (No. 5), and all others.
        self._number_abbreviations = frozenset(self._library.NUMERIC_ONLY_PREFIXES)
        self._abbreviations = {*self._library.NONBREAKING_PREFIXES} - self._number_abbreviations
        self._tokens_by_key = BoundedCache(self._chunk_tokens)
        self._detokenizer = MosesDetokenizer(language)
        self._escape = escape

    def tokenize(self, sentence: str) -> Tokens:
        """Return the tokens of a sentence.

        White space of all kinds separates tokens, as do characters that do not print.
        """
        # A printable text has no white space except plain spaces.
        text = sentence if sentence.isprintable() else replace_white_space(sentence)
        chunks = text.split()
        if chunks and _depends_on_sentence(text, chunks):
            return self._tokenize_whole(text)
        keys = self._cache_keys(text, chunks)
        # A hot loop: `map` and `chain` are faster here than a loop in Python.
        return list(chain.from_iterable(map(self._tokens_by_key.__getitem__, keys)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Return the sentence of some tokens; lower-cased text stays lower-cased."""
        text = " ".join(tokens)
        if self._escape:
            text = self._detokenizer.unescape_xml(text)
        if self._detokenizer.lang == "cs":
            text = join_czech_dashes(text)
        sentence: str = self._detokenizer.detokenize(text.split(" "), unescape=False)
        return sentence

    def _cache_keys(self, text: str, chunks: list[str]) -> list[str]:
        """Return the cache key of each chunk of a text.

        Most keys are the chunk itself. The key of a chunk with a final period ends with the kind of
        the next chunk. The list of chunks is changed and returned, which saves time.
        """
        first_period = text.find(".")
        if first_period == len(text) - 1:
            # Most sentences end like this: the only period is the last character.
            if chunks:
                chunks[-1] += _KEY_END_AT_SENTENCE_END
            return chunks
        if first_period < 0:
            return chunks
        # The chunk after the last one is of the kind "other". `pairwise` goes over a copy of the
        # chunks, since they are changed.
        for index, (chunk, next_chunk) in enumerate(pairwise([*chunks, _OTHER])):
            if chunk[-1] == ".":
                chunks[index] = f"{chunk} {self._kind_of(next_chunk)}"
        return chunks

    def _kind_of(self, next_chunk: str) -> str:
        """Return the kind of a chunk that follows a chunk with a final period."""
        first_character = next_chunk[0]
        if first_character in self._lower_case:
            return _LOWER_CASE
        return _DIGIT if first_character in _DIGITS else _OTHER

    def _chunk_tokens(self, key: str) -> tuple[str, ...]:
        """Return the tokens of a chunk.

        Most chunks are a word, perhaps with a comma or a period, and are split here. The library
        splits the others.

        Args:
            key: The cache key: the chunk, perhaps with a space and the kind of the next chunk.
        """
        if self._unsplit.issuperset(key):
            return (key,)
        chunk, _, next_kind = key.partition(" ")
        word = chunk[:-1]
        mark = chunk[-1]
        if word and mark in ",." and self._unsplit.issuperset(word):
            keeps_period = mark == "." and (
                next_kind == _LOWER_CASE
                or word in self._abbreviations
                or (next_kind == _DIGIT and word in self._number_abbreviations)
            )
            return (chunk,) if keeps_period else (word, mark)
        return self._split_by_library(chunk, next_kind or _LOWER_CASE)

    def _split_by_library(self, chunk: str, next_word: str) -> tuple[str, ...]:
        """Return the tokens into which the library splits a chunk.

        Args:
            chunk: The chunk.
            next_word: A word of the same kind as the next chunk.
        """
        # Between two other words, the chunk is at neither end of the sentence.
        return tuple(self._tokenize_whole(f"x {chunk} {next_word}")[1:-1])


def _depends_on_sentence(text: str, chunks: list[str]) -> bool:
    """Whether the tokens of a chunk depend on more than the chunk and the character after it."""
    return (
        chunks[0][0] in "',"
        or chunks[-1][-1] == "'"
        or ("'" in text and "' '" in " ".join(chunks))
        or _DOTS_NAME in text
    )


def _make_library(language: str) -> Any:
    """Return the library's tokenizer of a language, made faster.

    At each period, the library builds sets of thousands of characters. Here they are built once.
    """
    library = MosesTokenizer(language)
    library.islower = frozenset(library.IsLower).issuperset
    alphabetic = frozenset(library.IsAlpha)

    def has_alphabetic(text: str) -> bool:
        """Whether a text contains an alphabetic character."""
        return not alphabetic.isdisjoint(text)

    library.isanyalpha = has_alphabetic
    return library
