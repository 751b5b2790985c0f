"""Learning the merge operations of byte-pair encoding, the same ones as subword-nmt learns.

subword-nmt looks at all pairs of symbols for every merge. native/merges.cpp keeps the pairs in a
heap, ordered by frequency, and takes a twentieth of the time. Where the C++ library was not built,
subword-nmt itself learns the merges. Memory grows with the number of distinct words.
"""

import ctypes
from collections.abc import Iterator, Mapping
from io import StringIO
from itertools import islice

import numpy as np

from bleuprint import native

# The two symbols that a merge operation joins.
Pair = tuple[str, ...]


def learn_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Learn merge operations and yield them in the order in which they are applied.

    Pairs of symbols that occur only once are not merged, so there may be fewer than `merges`. The
    last symbol of a word ends in "</w>".

    Args:
        counts: How often each word occurs. Words are not empty and contain no space (U+0020).
        merges: The largest number of merge operations.
    """
    library = native.library()
    can_use_native = all(_is_plain(word) for word in counts)
    if library is not None and can_use_native:
        yield from islice(_native_merges(library, counts), merges)
    else:
        yield from _subword_nmt_merges(counts, merges)


def _is_plain(word: str) -> bool:
    """Return whether native/merges.cpp learns the same merges from a word as subword-nmt.

    They differ for words with white space, which subword-nmt takes for the end of a symbol, and
    with NUL, which ends a string in C.
    """
    return word.split() == [word] and "\0" not in word


def _subword_nmt_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Yield at most `merges` merge operations that subword-nmt learns."""
    # subword-nmt fails if no word has two characters, since there is no pair to merge then.
    has_pair = any(len(word) > 1 for word in counts)
    if not has_pair:
        return
    from subword_nmt.learn_bpe import learn_bpe

    codes = StringIO()
    dictionary = [f"{word} {count}" for word, count in counts.items()]
    learn_bpe(dictionary, codes, merges, is_dict=True)
    lines = codes.getvalue().split("\n")
    # The first line is the version of the format, and the last one is empty.
    for line in lines[1:-1]:
        yield tuple(line.split(" "))


def _native_merges(library: ctypes.CDLL, counts: Mapping[str, int]) -> Iterator[Pair]:
    """Yield all merge operations that native/merges.cpp learns."""
    # The library reads the words as one text, with the offset at which each of them ends.
    text = bytearray()
    ends = np.empty(len(counts), np.int64)
    for index, word in enumerate(counts):
        text += word.encode()
        ends[index] = len(text)
    word_counts = np.fromiter(counts.values(), np.int64, len(counts))
    library.merges_new.restype = ctypes.c_void_p
    library.merges_next.restype = ctypes.c_char_p
    arguments = native.c_arguments(bytes(text), ends, word_counts, len(counts))
    learner = ctypes.c_void_p(library.merges_new(*arguments))
    try:
        while line := library.merges_next(learner):
            yield tuple(line.decode().split(" "))
    finally:
        library.merges_delete(learner)
