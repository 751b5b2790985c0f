"""Byte-pair encoding (Sennrich et al. 2016), with the results of subword-nmt.

A subword that does not end its word ends in "@@". Words are split by native/splits.cpp, or by
subword-nmt's own code, which takes ten times as long. Memory grows with the number of distinct
words.
"""

import ctypes
import sys
import weakref
from collections.abc import Callable, Iterable
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random

from bleuprint import native
from bleuprint.dataset.subwords.vocabulary import read_counts
from bleuprint.runtime.files import DamagedFile
from bleuprint.text.parallel import read_lines

CONTINUED = "@@"
# The mark of a word's last symbol in codes.
END = "</w>"

HEADER = "#version: 0.2\n"
# Text as four bytes a character.
_CHARACTERS = f"utf-32-{sys.byteorder[0]}e"
# The rank of pairs that are no merge.
_NO_MERGE = sys.maxsize


class Bpe:
    """Splits words into subwords by the merges of `learn_codes` (none: into characters)."""

    def __init__(self, codes: Path, allowed: Path | None = None) -> None:
        """`allowed`: a file of subwords and counts; merges that make other subwords are undone."""
        # imported here: an exported system without it does not need the package
        from subword_nmt.apply_bpe import check_vocab_and_split, encode

        self._undo, self._encode = check_vocab_and_split, encode
        header, *self._lines = [*read_lines(codes)] or [""]
        if f"{header}\n" != HEADER:
            raise DamagedFile(codes, f"line 1 is not {HEADER.strip()}")
        for number, line in enumerate(self._lines, 2):
            if line.count(" ") != 1 or line.startswith(" ") or line.endswith(" "):
                raise DamagedFile(codes, f"line {number} is not two symbols and a space")
        self._allowed = {subword for subword, _ in read_counts(allowed)} if allowed else None
        library = native.library()
        self._native = None if library is None else _native_splitter(library, self._lines)

    @cached_property
    def _ranks(self) -> dict[tuple[str, ...], int]:
        """The merges, and their order; as in subword-nmt, the first of two equal ones counts."""
        merges = [tuple(line.split(" ")) for line in self._lines]
        return {merge: rank for rank, merge in reversed(list(enumerate(merges)))}

    @cached_property
    def _parts(self) -> dict[str, tuple[str, ...]]:
        return {"".join(merge): merge for merge in self._ranks}

    def split(self, word: str, dropout: float = 0.0, random: Random | None = None) -> list[str]:
        """The subwords of a word, which must not be empty.

        With `random`, BPE-dropout (Provilkov et al. 2020): at each step, each possible merge is
        skipped with probability `dropout`. Draws a number for each pair, in subword-nmt's order.
        """
        if len(word) == 1:
            return [word]
        if random is not None:
            symbols = self._drawn(word, dropout, random)
        elif self._native is not None:
            symbols = self._native(word)
        else:
            return self.split_by_subword_nmt(word)
        if self._allowed:
            symbols = self._undo(symbols, self._parts, self._allowed, CONTINUED)
        return _mark_continued(symbols)

    def split_by_subword_nmt(self, word: str) -> list[str]:
        """The same subwords of a word, without dropout, by subword-nmt's own code."""
        settings = self._allowed, CONTINUED, (0, 2)
        return _mark_continued(self._encode(word, self._ranks, self._parts, *settings, {}))

    def _drawn(self, word: str, dropout: float, random: Random) -> list[str]:
        """The symbols of a word after the merges that are not skipped."""
        symbols = [*word[:-1], word[-1] + END]
        while len(symbols) > 1:
            ranks = [self._ranks.get(pair, _NO_MERGE) for pair in pairwise(symbols)]
            ranks = [rank if random.random() > dropout else _NO_MERGE for rank in ranks]
            if (first := min(ranks)) == _NO_MERGE:
                break
            symbols = _merge(symbols, ranks, first)
        return [*symbols[:-1], symbols[-1].removesuffix(END)]


def _native_splitter(library: ctypes.CDLL, codes: Iterable[str]) -> Callable[[str], list[str]]:
    """A function from a word to its symbols after all merges, in C++."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    new, apply = library.splitter_new, library.splitter_split
    new.argtypes, new.restype = (ctypes.c_char_p, number), pointer
    apply.argtypes, apply.restype = (pointer, ctypes.c_char_p, number, pointer), number
    text = "".join(f"{line}\n" for line in codes)
    splitter = pointer(new(text.encode(_CHARACTERS), len(text)))

    def split(word: str) -> list[str]:
        size = len(word)
        ends = (ctypes.c_int32 * size)()
        found = apply(splitter, word.encode(_CHARACTERS, "surrogatepass"), size, ends)
        return [word[start:end] for start, end in pairwise([0, *ends[:found]])]

    weakref.finalize(split, library.splitter_delete, splitter)
    return split


def _merge(symbols: list[str], ranks: list[int], first: int) -> list[str]:
    """Join the pairs whose rank is `first`."""
    merged: list[str] = []
    done = 0
    for i in range(ranks.index(first), len(ranks)):
        if ranks[i] == first and i >= done:  # A A A has one pair A A, not two
            merged += symbols[done:i]
            merged.append(symbols[i] + symbols[i + 1])
            done = i + 2
    return merged + symbols[done:]


def join(subwords: Iterable[str]) -> list[str]:
    """Join subwords to words; the last word ends with the last subword, whatever its mark."""
    words, start = [], ""
    for subword in subwords:
        if subword.endswith(CONTINUED):
            start += subword.removesuffix(CONTINUED)
        else:
            words.append(start + subword)
            start = ""
    return [*words, start] if start else words


def _mark_continued(symbols: Iterable[str]) -> list[str]:
    """Add "@@" to all symbols of a word but the last.

    A last symbol that ends in "@@" itself is split: "@@" becomes "@@@ @".
    """
    *others, last = symbols
    subwords = [symbol + CONTINUED for symbol in others]
    if last.endswith(CONTINUED):
        return [*subwords, last[:-1] + CONTINUED, last[-1]]
    return [*subwords, last]
