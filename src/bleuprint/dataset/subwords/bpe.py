"""Byte-pair encoding (Sennrich et al. 2016), with the results of subword-nmt.

A subword that does not end its word ends in "@@". Memory grows with the number of distinct words.
"""

import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from random import Random

from bleuprint.dataset.subwords.vocabulary import read_counts
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
        # imported here: an exported system without it does not need the package
        from subword_nmt.apply_bpe import check_vocab_and_split

        self._undo = check_vocab_and_split
        _, *lines = read_lines(codes)  # after HEADER
        merges = [tuple(line.split(" ")) for line in lines]
        # As in subword-nmt, the first of two equal merges counts.
        self._ranks = {merge: rank for rank, merge in reversed(list(enumerate(merges)))}
        self._parts = {"".join(merge): merge for merge in self._ranks}
        self._allowed = {subword for subword, _ in read_counts(allowed)} if allowed else None

    def split(self, word: str, dropout: float = 0.0, random: Random | None = None) -> list[str]:
        """The subwords of a word, which must not be empty.

        With `random`, BPE-dropout (Provilkov et al. 2020): at each step, each possible merge is
        skipped with probability `dropout`. Draws a number for each pair, in subword-nmt's order.
        """
        if len(word) == 1:
            return [word]
        symbols = [*word[:-1], word[-1] + END]
        while len(symbols) > 1:
            ranks = [self._ranks.get(pair, _NO_MERGE) for pair in pairwise(symbols)]
            if random is not None:
                ranks = [rank if random.random() > dropout else _NO_MERGE for rank in ranks]
            if (first := min(ranks)) == _NO_MERGE:
                break
            symbols = _merge(symbols, ranks, first)
        symbols[-1] = symbols[-1].removesuffix(END)
        if self._allowed:
            symbols = self._undo(symbols, self._parts, self._allowed, CONTINUED)
        return _mark_continued(symbols)


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
