"""Byte-pair encoding (BPE; Sennrich et al. 2016), with the results of subword-nmt.

BPE splits a word into characters and applies learned merge operations, in their order, each of
which joins two neighboring symbols. A subword that does not end its word ends in "@@". Words are
split by native/splits.cpp, or by subword-nmt's own code, which takes ten times as long. Memory
grows with the number of distinct words.
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

# The mark at the end of a subword that does not end its word.
CONTINUED = "@@"
# The mark of a word's last symbol in codes.
END = "</w>"

# The first line of a file of codes.
HEADER = "#version: 0.2\n"
# The version of codes in which END is part of the last symbol, as a pair of numbers.
_CODES_VERSION = (0, 2)
# The encoding of text for C++: four bytes for each character, in this machine's byte order.
_CHARACTERS = f"utf-32-{sys.byteorder[0]}e"
# The rank of a pair of symbols that is not merged: behind all merge operations.
_NO_MERGE = sys.maxsize

# The two symbols that a merge operation joins.
Merge = tuple[str, ...]


class Bpe:
    """Splits words into subwords by merge operations; without any, into characters."""

    def __init__(self, codes: Path, allowed: Path | None = None) -> None:
        """Read the merge operations.

        Args:
            codes: The file of codes, as `learn_codes` returns it.
            allowed: A file of subwords and counts. A merge that gives another subword is undone.

        Raises:
            DamagedFile: A file is damaged.
        """
        # Imported here, since an exported system without BPE does not need the package.
        from subword_nmt.apply_bpe import check_vocab_and_split, encode

        self._undo_merges = check_vocab_and_split
        self._subword_nmt_encode = encode
        self._code_lines = _read_codes(codes)
        self._allowed: set[str] | None = None
        if allowed is not None:
            self._allowed = set()
            for subword, _ in read_counts(allowed):
                self._allowed.add(subword)
        self._native_split: Callable[[str], list[str]] | None = None
        library = native.library()
        if library is not None:
            self._native_split = _native_splitter(library, self._code_lines)

    @cached_property
    def _ranks(self) -> dict[Merge, int]:
        """Return the place of each merge operation in the order of application.

        The operations are inserted from the last one to the first one, as in subword-nmt: if one
        occurs twice, its first place overwrites the other.
        """
        ranks: dict[Merge, int] = {}
        for rank in reversed(range(len(self._code_lines))):
            merge = tuple(self._code_lines[rank].split(" "))
            ranks[merge] = rank
        return ranks

    @cached_property
    def _parts(self) -> dict[str, Merge]:
        """Return the two symbols that each merged symbol consists of, for undoing merges.

        If several operations give the same symbol, the one that is inserted last into `_ranks`
        counts, as in subword-nmt.
        """
        parts: dict[str, Merge] = {}
        for merge in self._ranks:
            parts["".join(merge)] = merge
        return parts

    def split(self, word: str, dropout: float = 0.0, random: Random | None = None) -> list[str]:
        """Return the subwords of a word.

        With `random`, this is BPE-dropout (Provilkov et al. 2020): at each step, each possible
        merge is skipped with probability `dropout`.

        Args:
            word: The word, which must not be empty.
            dropout: The probability with which a merge is skipped.
            random: The generator to draw from; None to apply all merges.
        """
        if len(word) == 1:
            return [word]
        if random is not None:
            symbols = self._merge_with_dropout(word, dropout, random)
        elif self._native_split is not None:
            symbols = self._native_split(word)
        else:
            return self.split_by_subword_nmt(word)
        if self._allowed:
            symbols = self._undo_merges(symbols, self._parts, self._allowed, CONTINUED)
        return _mark_continued(symbols)

    def split_by_subword_nmt(self, word: str) -> list[str]:
        """Return the subwords of a word, without dropout, by subword-nmt's own code."""
        no_cache: dict[str, tuple[str, ...]] = {}
        symbols = self._subword_nmt_encode(
            word,
            self._ranks,
            self._parts,
            self._allowed,
            CONTINUED,
            _CODES_VERSION,
            no_cache,
        )
        return _mark_continued(symbols)

    def _merge_with_dropout(self, word: str, dropout: float, random: Random) -> list[str]:
        """Return the symbols of a word after merging with BPE-dropout.

        Draws one number for each pair of neighboring symbols at each step, as subword-nmt does, so
        that the same generator gives the same subwords.
        """
        symbols = [*word[:-1], word[-1] + END]
        rank_by_merge = self._ranks
        while len(symbols) > 1:
            ranks = []
            for pair in pairwise(symbols):
                is_skipped = random.random() <= dropout
                rank = rank_by_merge.get(pair, _NO_MERGE)
                ranks.append(_NO_MERGE if is_skipped else rank)
            first_rank = min(ranks)
            if first_rank == _NO_MERGE:
                break
            symbols = _merge_pairs(symbols, ranks, first_rank)
        symbols[-1] = symbols[-1].removesuffix(END)
        return symbols


def _read_codes(path: Path) -> list[str]:
    """Read the lines of a file of codes without its header: two symbols and a space each."""
    lines = list(read_lines(path))
    if not lines or f"{lines[0]}\n" != HEADER:
        raise DamagedFile(path, f"line 1 is not {HEADER.strip()}")
    for number, line in enumerate(lines[1:], 2):
        if line.count(" ") != 1 or line.startswith(" ") or line.endswith(" "):
            raise DamagedFile(path, f"line {number} is not two symbols and a space")
    return lines[1:]


def _native_splitter(library: ctypes.CDLL, code_lines: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function from a word to its symbols after all merges, written in C++."""
    create = library.splitter_new
    create.argtypes = (ctypes.c_char_p, ctypes.c_int64)
    create.restype = ctypes.c_void_p
    apply = library.splitter_split
    apply.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
    apply.restype = ctypes.c_int64

    codes = "".join(f"{line}\n" for line in code_lines)
    splitter = ctypes.c_void_p(create(codes.encode(_CHARACTERS), len(codes)))

    def split(word: str) -> list[str]:
        """Return the symbols of a word; C++ writes the index in the word where each one ends."""
        ends = (ctypes.c_int32 * len(word))()
        characters = word.encode(_CHARACTERS, "surrogatepass")
        symbol_count = apply(splitter, characters, len(word), ends)
        bounds = [0, *ends[:symbol_count]]
        return [word[start:end] for start, end in pairwise(bounds)]

    # The C++ object is deleted with the function that uses it.
    weakref.finalize(split, library.splitter_delete, splitter)
    return split


def _merge_pairs(symbols: list[str], ranks: list[int], rank: int) -> list[str]:
    """Join all pairs of neighboring symbols that one merge operation applies to.

    Args:
        symbols: The symbols of a word.
        ranks: The rank of the merge of each pair; pair i consists of symbols i and i + 1.
        rank: The rank of the operation to apply.
    """
    merged: list[str] = []
    # The number of symbols that `merged` already contains.
    done = 0
    for index in range(ranks.index(rank), len(ranks)):
        # Pairs do not overlap: A A A contains one pair A A, not two.
        is_free = index >= done
        if ranks[index] == rank and is_free:
            merged += symbols[done:index]
            merged.append(symbols[index] + symbols[index + 1])
            done = index + 2
    return merged + symbols[done:]


def join(subwords: Iterable[str]) -> list[str]:
    """Join subwords to words; the last word ends with the last subword, whatever its mark."""
    words = []
    word_start = ""
    for subword in subwords:
        if subword.endswith(CONTINUED):
            word_start += subword.removesuffix(CONTINUED)
        else:
            words.append(word_start + subword)
            word_start = ""
    if word_start:
        words.append(word_start)
    return words


def _mark_continued(symbols: Iterable[str]) -> list[str]:
    """Append "@@" to all symbols of a word except the last one.

    If the last symbol itself ends in "@@", it is split, so that it does not look continued: "@@"
    becomes "@@@ @".
    """
    *first_symbols, last = symbols
    subwords = [symbol + CONTINUED for symbol in first_symbols]
    if last.endswith(CONTINUED):
        subwords.append(last[:-1] + CONTINUED)
        subwords.append(last[-1])
    else:
        subwords.append(last)
    return subwords
