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

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Any

from sacremoses import MosesDetokenizer, MosesTokenizer

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.unicode import blank_white

Tokens = list[str]

# Marks a chunk with a final period at the end of the sentence, or before a character that is
# neither a lower-case letter nor a digit.
_AT_END = " A"

_DOTS = "DOTMULTI"
_DIGITS = frozenset("0123456789")

# For Czech "a' - li" the library should return "a'-li", but raises a TypeError.
_CZECH_DASH = re.compile(rf"(?<=[{MosesDetokenizer.IsAlpha}]') ([-–]) (?=(?i:li(?: |$)|mail))")


class Moses:
    """The Moses tokenizer and detokenizer of one language.

    `hyphens`: words are split at hyphens, a-b into a @-@ b. `escape`: & < > ' " | [ ] become XML
    entities. A language without abbreviations in the library uses those of English.
    """

    def __init__(self, language: str, hyphens: bool, escape: bool) -> None:
        library = _library(language)
        self._whole: Callable[[str], Tokens] = partial(
            library.tokenize, aggressive_dash_splits=hyphens, escape=escape
        )
        self._chunks = BoundedCache(_Chunks(self._whole, frozenset(library.IsAlnum)))
        self._lower = frozenset(library.IsLower)
        self._detokenizer = MosesDetokenizer(language)
        self._escape = escape

    def tokenize(self, sentence: str) -> Tokens:
        """The tokens of a sentence; non-printing characters and all white space separate tokens."""
        # A printable string has no white space except plain spaces.
        text = sentence if sentence.isprintable() else blank_white(sentence)
        chunks = text.split()
        if not chunks:
            return []
        if _is_exception(text, chunks):
            return self._whole(text)
        if "." in text:
            for place, (chunk, after) in enumerate(pairwise([*chunks, "A"])):
                if chunk[-1] == ".":
                    chunks[place] = chunk + self._kind(after)
        return list(chain.from_iterable(map(self._chunks.__getitem__, chunks)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens; lower-cased text stays lower-cased."""
        text = " ".join(tokens)
        if self._escape:
            text = self._detokenizer.unescape_xml(text)
        if self._detokenizer.lang == "cs":
            text = _CZECH_DASH.sub(r"\1", text)
        sentence: str = self._detokenizer.detokenize(text.split(" "), unescape=False)
        return sentence

    def _kind(self, after: str) -> str:
        """The mark of a chunk with a final period, by the chunk after it."""
        if after[0] in self._lower:
            return " x"
        return " 1" if after[0] in _DIGITS else _AT_END


class _Chunks:
    """The tokens of a chunk; the key of a chunk with a final period has a kind after a space."""

    def __init__(self, tokenize: Callable[[str], Tokens], alphanumeric: frozenset[str]) -> None:
        self._tokenize, self._alphanumeric = tokenize, alphanumeric

    def __call__(self, key: str) -> tuple[str, ...]:
        if self._alphanumeric.issuperset(key):
            return (key,)  # no expression matches inside a word
        chunk, _, after = key.partition(" ")
        # Between two words, the chunk is at neither end of the sentence.
        return tuple(self._tokenize(f"x {chunk} {after or 'x'}")[1:-1])


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
