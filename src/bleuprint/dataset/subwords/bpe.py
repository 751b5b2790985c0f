"""Byte-pair encoding (Sennrich et al. 2016), with the results of subword-nmt.

A subword that does not end its word ends in "@@". Memory grows with the number of distinct words.
"""

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

from subword_nmt.apply_bpe import check_vocab_and_split

from bleuprint.dataset.subwords.vocabulary import read_counts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import read_lines

CONTINUED = "@@"
# The mark of a word's last symbol in codes.
END = "</w>"

HEADER = "#version: 0.2\n"
# The rank of pairs that are no merge.
_NO_MERGE = sys.maxsize


class Bpe:
    """Splits words into subwords by the merges of `learn_codes` (none: into characters)."""

    def __init__(self, codes: Path, allowed: Path | None = None) -> None:
        """`allowed`: a file of subwords and counts; merges that make other subwords are undone."""
        lines = list(read_lines(codes))
        if not lines or lines[0] + "\n" != HEADER:
            raise UserError(f"{codes}:1: not the codes of a byte-pair encoding")
        merges = [tuple(line.split(" ")) for line in lines[1:]]
        for number, (line, merge) in enumerate(zip(lines[1:], merges, strict=True), 2):
            if len(merge) != 2:
                raise UserError(f"{codes}:{number}: {line!r} is not a merge of two symbols")
        # As in subword-nmt, the first of two equal merges counts.
        self._ranks = {merge: rank for rank, merge in reversed(list(enumerate(merges)))}
        self._parts = {"".join(merge): merge for merge in self._ranks}
        self._allowed = {subword for subword, _ in read_counts(allowed)} if allowed else None

    def split(self, word: str) -> list[str]:
        """The subwords of a word, which must not be empty."""
        rank_of = self._ranks.get
        return self._split(word, lambda pairs: [rank_of(pair, _NO_MERGE) for pair in pairs])

    def split_at_random(self, word: str, dropout: float, random: Random) -> list[str]:
        """The subwords of a word with BPE-dropout (Provilkov et al. 2020): at each step, each
        possible merge is skipped with probability `dropout`.

        Draws one random number a pair, in subword-nmt's order.
        """
        rank_of, draw = self._ranks.get, random.random
        return self._split(
            word,
            lambda pairs: [
                rank_of(pair, _NO_MERGE) if draw() > dropout else _NO_MERGE for pair in pairs
            ],
        )

    def _split(self, word: str, ranks_of: "_RanksOf") -> list[str]:
        if len(word) == 1:
            return [word]
        symbols = _merge([*word[:-1], word[-1] + END], ranks_of)
        symbols[-1] = symbols[-1].removesuffix(END)
        if self._allowed:
            symbols = check_vocab_and_split(symbols, self._parts, self._allowed, CONTINUED)
        return _mark_continued(symbols)


# Maps pairs of symbols to the ranks of their merges, or to _NO_MERGE.
_RanksOf = Callable[[Iterable[tuple[str, str]]], list[int]]


def _merge(symbols: list[str], ranks_of: _RanksOf) -> list[str]:
    """Apply the merge of the lowest rank until none is left."""
    while len(symbols) > 1:
        ranks = ranks_of(pairwise(symbols))
        first = min(ranks)
        if first == _NO_MERGE:
            break
        merged: list[str] = []
        done = 0
        for i in range(ranks.index(first), len(ranks)):
            if ranks[i] == first and i >= done:  # A A A holds one pair A A, not two
                merged += symbols[done:i]
                merged.append(symbols[i] + symbols[i + 1])
                done = i + 2
        symbols = merged + symbols[done:]
    return symbols


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
