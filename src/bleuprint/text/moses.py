"""The Moses tokeniser and detokeniser: the tokens of sacremoses, found several times as fast.

sacremoses applies some twenty regular expressions to each sentence. Nearly all of them see no
further than a space, so what stands between two spaces (a chunk here) becomes the same tokens
wherever it stands, and is looked up once it has been met. What depends on the surroundings:

- a period at the end of a chunk: the library looks at the first character of the next one, and
  tells three kinds of it apart. The chunk is looked up together with that kind.
- an apostrophe or a comma that opens the sentence, an apostrophe that closes it, an apostrophe
  after a chunk that ends in one, and the library's own name for several dots. Such a sentence is
  left to the library.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

from sacremoses import MosesDetokenizer, MosesTokenizer

from bleuprint.runtime.memoize import BoundedCache
from bleuprint.text.unicode import blank_white

Tokens = list[str]

# What marks a chunk that ends in a period at the sentence's end, or before neither letter in lower
# case nor digit.
_AT_END = " A"

_DOTS = "DOTMULTI"
_DIGITS = frozenset("0123456789")

# Of the Czech "a' - li" the library wants to make "a'-li", but fails with a TypeError.
_CZECH_DASH = re.compile(rf"(?<=[{MosesDetokenizer.IsAlpha}]') ([-–]) (?=(?i:li(?: |$)|mail))")


class Moses:
    """The Moses tokeniser of one language, and its way back.

    `hyphens`: words are split at them, a-b becoming a @-@ b. `escape`: & < > ' " | [ ] are written
    as XML entities. A language that the library does not know has the abbreviations of English.
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
        """The tokens of a sentence; unprinted characters and all white space separate tokens."""
        # What is printable throughout has no white space but plain spaces.
        text = sentence if sentence.isprintable() else blank_white(sentence)
        chunks = text.split()
        if not chunks:
            return []
        if _depends_on_place(text, chunks):
            return self._whole(text)
        if (period := text.find(".")) >= 0:
            if period == len(text) - 1:  # so do most sentences end
                chunks[-1] += _AT_END
            else:
                self._mark_periods(chunks)
        return list(chain.from_iterable(map(self._chunks.__getitem__, chunks)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """The sentence that these tokens make; lower-cased text stays so."""
        text = " ".join(tokens)
        if self._escape:
            text = self._detokenizer.unescape_xml(text)
        if self._detokenizer.lang == "cs":
            text = _CZECH_DASH.sub(r"\1", text)
        sentence: str = self._detokenizer.detokenize(text.split(" "), unescape=False)
        return sentence

    def _mark_periods(self, chunks: list[str]) -> None:
        """Add to each chunk that ends in a period what stands for the kind of the next chunk."""
        last = len(chunks) - 1
        for place, chunk in enumerate(chunks):
            if chunk[-1] == ".":
                chunks[place] = chunk + (self._kind(chunks[place + 1]) if place < last else _AT_END)

    def _kind(self, after: str) -> str:
        if after[0] in self._lower:
            return " x"
        return " 1" if after[0] in _DIGITS else _AT_END


class _Chunks:
    """The tokens of chunks.

    A key is a chunk, with a space and a chunk that follows where it ends in a period.
    """

    def __init__(self, tokenize: Callable[[str], Tokens], alphanumeric: frozenset[str]) -> None:
        self._tokenize, self._alphanumeric = tokenize, alphanumeric

    def __call__(self, key: str) -> tuple[str, ...]:
        if self._alphanumeric.issuperset(key):
            return (key,)  # no expression matches inside a word
        chunk, _, after = key.partition(" ")
        # Between two words nothing stands at an edge of the sentence.
        return tuple(self._tokenize(f"x {chunk} {after or 'x'}")[1:-1])


def _depends_on_place(text: str, chunks: list[str]) -> bool:
    """Whether the tokens of some chunk depend on more than it and the first character after it."""
    return (
        chunks[0][0] in "',"
        or chunks[-1][-1] == "'"
        or ("'" in text and "' '" in " ".join(chunks))
        or _DOTS in text
    )


def _library(language: str) -> Any:
    """The library's tokeniser, without what it does again at every call.

    It makes sets of thousands of characters anew at each period, and some of its classes list
    90,000 characters one by one where ranges hold the same.
    """
    library = MosesTokenizer(language)
    library.islower = frozenset(library.IsLower).issuperset
    alphabetic = frozenset(library.IsAlpha)
    library.isanyalpha = lambda text: not alphabetic.isdisjoint(text)
    alphanumeric = _ranges(library.IsAlnum)
    library.PAD_NOT_ISALNUM = re.compile(rf"([^{alphanumeric}\s.'`,\-])"), r" \1 "
    library.AGGRESSIVE_HYPHEN_SPLIT = (
        re.compile(f"([{alphanumeric}])-(?=[{alphanumeric}])"),
        r"\1 @-@ ",
    )
    return library


def _ranges(characters: str) -> str:
    """A set of characters as the inside of a regular expression's class."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, set(characters))):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
