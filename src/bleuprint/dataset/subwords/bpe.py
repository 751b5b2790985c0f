"""Byte-pair encoding as by subword-nmt.

A unit that the next one continues ends in "@@". Memory grows with the number of different words.
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
# What the last character of a word bears in codes.
END = "</w>"

HEADER = "#version: 0.2\n"
# A rank that no merge has.
_NEVER = sys.maxsize


class Bpe:
    """Splits words into units by the merges of `learn_codes`; without any, into characters."""

    def __init__(self, codes: Path, allowed: Path | None = None) -> None:
        """`allowed`: units and their counts; merges that make others are undone where possible."""
        lines = list(read_lines(codes))
        if not lines or lines[0] + "\n" != HEADER:
            raise UserError(f"{codes}:1: not the codes of a byte-pair encoding")
        merges = [tuple(line.split(" ")) for line in lines[1:]]
        for number, (line, merge) in enumerate(zip(lines[1:], merges, strict=True), 2):
            if len(merge) != 2:
                raise UserError(f"{codes}:{number}: {line!r} is not a merge of two units")
        # In subword-nmt's order: of a merge that is there twice, the first one counts.
        self._ranks = {merge: rank for rank, merge in reversed(list(enumerate(merges)))}
        self._parts = {"".join(merge): merge for merge in self._ranks}
        self._allowed = {unit for unit, _ in read_counts(allowed)} if allowed else None

    def split(self, word: str) -> list[str]:
        """The units of a word that is not empty."""
        rank_of = self._ranks.get
        return self._units(word, lambda pairs: [rank_of(pair, _NEVER) for pair in pairs])

    def split_at_random(self, word: str, dropout: float, random: Random) -> list[str]:
        """The units of a word when each merge, each time it could be made, is left out with
        probability `dropout`: BPE-dropout (Provilkov et al. 2020).

        Draws as subword-nmt does, pair by pair.
        """
        rank_of, draw = self._ranks.get, random.random
        return self._units(
            word,
            lambda pairs: [rank_of(pair, _NEVER) if draw() > dropout else _NEVER for pair in pairs],
        )

    def _units(self, word: str, ranks_of: "_RanksOf") -> list[str]:
        if len(word) == 1:
            return [word]
        symbols = _merged([*word[:-1], word[-1] + END], ranks_of)
        symbols[-1] = symbols[-1].removesuffix(END)
        if self._allowed:
            symbols = check_vocab_and_split(symbols, self._parts, self._allowed, CONTINUED)
        return _marked(symbols)


# The rank of each of some pairs of symbols; _NEVER of one that is not to be merged.
_RanksOf = Callable[[Iterable[tuple[str, str]]], list[int]]


def _merged(symbols: list[str], ranks_of: _RanksOf) -> list[str]:
    """The symbols when nothing is left to merge; of all merges that of the lowest rank is first."""
    while len(symbols) > 1:
        ranks = ranks_of(pairwise(symbols))
        first = min(ranks)
        if first == _NEVER:
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


def join(units: Iterable[str]) -> list[str]:
    """The tokens that these units make; the last one ends wherever the units do."""
    tokens, begun = [], ""
    for unit in units:
        if unit.endswith(CONTINUED):
            begun += unit.removesuffix(CONTINUED)
        else:
            tokens.append(begun + unit)
            begun = ""
    return [*tokens, begun] if begun else tokens


def _marked(parts: Iterable[str]) -> list[str]:
    """The parts of a word as units; the last one never looks continued: "@@" becomes "@@@ @"."""
    *begun, last = parts
    units = [part + CONTINUED for part in begun]
    if last.endswith(CONTINUED):
        return [*units, last[:-1] + CONTINUED, last[-1]]
    return [*units, last]
