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
from bleuprint.runtime.file_errors import DamagedFile
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
# The rank of a pair of symbols that is not to be merged: higher than that of every operation.
_NOT_MERGED = sys.maxsize

# The two symbols that a merge operation joins.
Merge = tuple[str, ...]


class Bpe:
    """Splits words into subwords by merge operations; without any, into characters."""

    def __init__(self, codes: Path, allowed: Path | None = None) -> None:
        """Read the merge operations, and load the C++ code that applies them, if it was built.

        Args:
            codes: The file of merge operations, as subword-nmt writes it.
            allowed: A file of the subwords that may be used, with their counts; None if all may. A
                merge that gives another subword is undone.

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
            self._allowed = {subword for subword, _ in read_counts(allowed)}
        self._native_split: Callable[[str], list[str]] | None = None
        library = native.library()
        if library is not None:
            self._native_split = _native_splitter(library, self._code_lines)

    @cached_property
    def _ranks(self) -> dict[Merge, int]:
        """Return the rank of each merge operation: operations with a lower rank are applied first.

        The rank is the index of the operation's line in the file.
        """
        ranks: dict[Merge, int] = {}
        # From the last line to the first one, as in subword-nmt: if an operation occurs twice, the
        # rank of its first line replaces the other.
        for rank in reversed(range(len(self._code_lines))):
            merge = tuple(self._code_lines[rank].split(" "))
            ranks[merge] = rank
        return ranks

    @cached_property
    def _parts(self) -> dict[str, Merge]:
        """Return the two symbols that each merged symbol was made from: "abc" from "ab" and "c".

        With them, merges can be undone.
        """
        parts: dict[str, Merge] = {}
        # Several operations may give the same symbol, such as "ab c" and "a bc". The last one in
        # the order of `_ranks` counts, as in subword-nmt.
        for merge in self._ranks:
            merged_symbol = "".join(merge)
            parts[merged_symbol] = merge
        return parts

    def split(self, word: str, dropout: float = 0.0, random: Random | None = None) -> list[str]:
        """Split a word into subwords: "Hallo" into "Hal@@" and "lo".

        With a random generator, this is BPE-dropout (Provilkov et al. 2020), which skips merges at
        random. A subword that is not allowed is split again into the symbols it was merged from.

        Args:
            word: The word, which must not be empty.
            dropout: The probability with which each possible merge is skipped.
            random: The generator to draw from; None to apply all merges.
        """
        if len(word) == 1:
            return [word]
        if random is not None:
            symbols = self._merge_with_dropout(word, dropout, random)
        elif self._native_split is not None:
            symbols = self._native_split(word)
        else:
            # The C++ code was not built. subword-nmt does all steps, also those below.
            return self.split_by_subword_nmt(word)
        if self._allowed:
            symbols = self._undo_merges(symbols, self._parts, self._allowed, CONTINUED)
        return _mark_continued(symbols)

    def split_by_subword_nmt(self, word: str) -> list[str]:
        """Split a word into subwords by the library subword-nmt, which applies all merges.

        It takes ten times as long as our C++ code, which returns the same.
        """
        # The library stores each word in the cache that it is given. The caller caches words
        # already, so it gets an empty cache each time.
        unused_cache: dict[str, tuple[str, ...]] = {}
        symbols = self._subword_nmt_encode(
            word,
            self._ranks,
            self._parts,
            self._allowed,
            CONTINUED,
            _CODES_VERSION,
            unused_cache,
        )
        return _mark_continued(symbols)

    def _merge_with_dropout(self, word: str, dropout: float, random: Random) -> list[str]:
        """Merge the characters of a word to symbols with BPE-dropout, which skips merges at random.

        Each step looks at all pairs of neighboring symbols, skips some at random, and applies the
        merge operation with the lowest rank among the rest. It stops when no pair is left to merge.

        Args:
            word: The word.
            dropout: The probability with which each possible merge is skipped.
            random: The generator to draw from.
        """
        # The last symbol gets the mark </w>: the end of a word has merge operations of its own.
        symbols = [*word[:-1], word[-1] + END]
        rank_by_merge = self._ranks
        while len(symbols) > 1:
            ranks = []
            for pair in pairwise(symbols):
                # One number for each pair, even if it cannot be merged: as in subword-nmt, so that
                # the same generator gives the same subwords.
                is_skipped = random.random() <= dropout
                rank = rank_by_merge.get(pair, _NOT_MERGED)
                ranks.append(_NOT_MERGED if is_skipped else rank)
            lowest_rank = min(ranks)
            if lowest_rank == _NOT_MERGED:
                break
            symbols = _merge_pairs(symbols, ranks, lowest_rank)
        symbols[-1] = symbols[-1].removesuffix(END)
        return symbols


def _read_codes(path: Path) -> list[str]:
    """Read the lines of a file of merge operations: two symbols with a space between them.

    Returns:
        The lines without the first one, which is a header.

    Raises:
        DamagedFile: The header or a line has another form.
    """
    lines = list(read_lines(path))
    if not lines or f"{lines[0]}\n" != HEADER:
        raise DamagedFile(path, f"line 1 is not {HEADER.strip()}")
    for number, line in enumerate(lines[1:], 2):
        if line.count(" ") != 1 or line.startswith(" ") or line.endswith(" "):
            raise DamagedFile(path, f"line {number} is not two symbols and a space")
    return lines[1:]


def _native_splitter(library: ctypes.CDLL, code_lines: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that splits a word into symbols by C++, which applies all merge operations.

    The function owns an object in C++, which holds the merge operations.

    Args:
        library: The loaded library of our C++ functions.
        code_lines: The merge operations, in their order, each as two symbols and a space.
    """
    # ctypes must know the types of the arguments and results: by default, it takes results for 32
    # bits, which would cut a pointer.
    create_splitter = library.splitter_new
    create_splitter.argtypes = (ctypes.c_char_p, ctypes.c_int64)
    create_splitter.restype = ctypes.c_void_p
    split_word = library.splitter_split
    split_word.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p)
    split_word.restype = ctypes.c_int64

    codes = "".join(f"{line}\n" for line in code_lines)
    splitter = ctypes.c_void_p(create_splitter(codes.encode(_CHARACTERS), len(codes)))

    def split(word: str) -> list[str]:
        """Split a word into symbols by the C++ function."""
        # A C array for the results: a word has at most as many symbols as characters.
        ends = (ctypes.c_int32 * len(word))()
        characters = word.encode(_CHARACTERS, "surrogatepass")
        # C++ writes into `ends` where in the word each symbol ends: 3 and 5 for "Hal" and "lo".
        symbol_count = split_word(splitter, characters, len(word), ends)
        bounds = [0, *ends[:symbol_count]]
        return [word[start:end] for start, end in pairwise(bounds)]

    # When Python deletes the function, the C++ object is deleted, too.
    weakref.finalize(split, library.splitter_delete, splitter)
    return split


def _merge_pairs(symbols: list[str], ranks: list[int], rank: int) -> list[str]:
    """Apply one merge operation: join each pair of neighboring symbols that has its rank.

    For the operation that joins `a b`, the symbols `a b c a b` become `ab c ab`.

    Args:
        symbols: The symbols of a word.
        ranks: The rank of the operation for each pair; pair i consists of symbols i and i + 1.
        rank: The rank of the operation to apply, which identifies it.

    Returns:
        The symbols after the operation.
    """
    merged: list[str] = []
    done = 0  # How many of the symbols are in `merged`, alone or as part of a pair.
    for index in range(ranks.index(rank), len(ranks)):
        # Pairs do not overlap: in `a a a`, the second `a` belongs to the first pair only.
        is_free = index >= done
        if ranks[index] == rank and is_free:
            merged += symbols[done:index]
            merged.append(symbols[index] + symbols[index + 1])
            done = index + 2
    return merged + symbols[done:]


def join(subwords: Iterable[str]) -> list[str]:
    """Join subwords to words: "Hal@@", "lo" and "Welt" to "Hallo" and "Welt"."""
    words = []
    word_start = ""
    for subword in subwords:
        if subword.endswith(CONTINUED):
            word_start += subword.removesuffix(CONTINUED)
        else:
            words.append(word_start + subword)
            word_start = ""
    # A model may end its output within a word, after "Hal@@"; then the word is "Hal".
    if word_start:
        words.append(word_start)
    return words


def _mark_continued(symbols: Iterable[str]) -> list[str]:
    """Append "@@" to all symbols of a word except the last one: "Hal" and "lo" to "Hal@@" and "lo".

    The mark says that the word continues, so that `join` can restore the words.
    """
    *first_symbols, last_symbol = symbols
    subwords = [symbol + CONTINUED for symbol in first_symbols]
    if last_symbol.endswith(CONTINUED):
        # The text itself contains "@@" here, which would look like the mark. So the last character
        # becomes a subword of its own: "@@" becomes "@@@" (an "@" that continues) and "@".
        subwords.append(last_symbol[:-1] + CONTINUED)
        subwords.append(last_symbol[-1])
    else:
        subwords.append(last_symbol)
    return subwords
