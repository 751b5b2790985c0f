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
    """Learn the merge operations of BPE; yield them in the order in which they are applied.

    At first, each character is a symbol. Each operation joins the pair of neighboring symbols that
    is then the most frequent one. Pairs that occur only once are not joined, so there may be fewer
    operations than `merges`.

    Args:
        counts: How often each word occurs. Words are not empty and contain no space (U+0020).
        merges: The largest number of merge operations.

    Yields:
        The two symbols to join. The last symbol of a word ends in "</w>".
    """
    library = native.library()  # None if our C++ code was not built.
    are_words_safe_for_cpp = all(_is_safe_for_cpp(word) for word in counts)
    if library is not None and are_words_safe_for_cpp:
        # C++ learns all operations, one at a time, until the caller needs no more.
        yield from islice(_cpp_merges(library, counts), merges)
    else:
        yield from _subword_nmt_merges(counts, merges)


def _is_safe_for_cpp(word: str) -> bool:
    """Return whether our C++ code learns the same merges from a word as subword-nmt.

    The results differ for a word with white space, which subword-nmt reads as the end of a symbol,
    and for a word with the character NUL, which ends a string in C.
    """
    has_white_space = word.split() != [word]
    return not has_white_space and "\0" not in word


def _subword_nmt_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Learn merge operations with subword-nmt, and yield them.

    Args:
        counts: How often each word occurs.
        merges: The largest number of merge operations.
    """
    # subword-nmt fails if there is no pair to merge, that is, if all words are single characters.
    has_pair = any(len(word) > 1 for word in counts)
    if not has_pair:
        return
    from subword_nmt.learn_bpe import learn_bpe

    # subword-nmt writes a file: a version, then a line for each merge operation, with two symbols.
    codes = StringIO()
    dictionary = [f"{word} {count}" for word, count in counts.items()]
    learn_bpe(dictionary, codes, merges, is_dict=True)
    _version_line, *merge_lines, _empty_line = codes.getvalue().split("\n")
    for line in merge_lines:
        yield tuple(line.split(" "))


def _cpp_merges(library: ctypes.CDLL, counts: Mapping[str, int]) -> Iterator[Pair]:
    """Learn all merge operations with our C++ code, native/merges.cpp, and yield them.

    Args:
        library: The loaded library of our C++ functions.
        counts: How often each word occurs.
    """
    # The library reads the words as one text, without spaces, and the offset where each word ends.
    text = bytearray()
    ends = np.empty(len(counts), np.int64)
    for index, word in enumerate(counts):
        text += word.encode()
        ends[index] = len(text)
    word_counts = np.fromiter(counts.values(), np.int64, len(counts))
    # By default, ctypes takes a result for 32 bits, which would cut a pointer.
    library.merges_new.restype = ctypes.c_void_p
    library.merges_next.restype = ctypes.c_char_p
    arguments = native.c_arguments(bytes(text), ends, word_counts, len(counts))
    learner = ctypes.c_void_p(library.merges_new(*arguments))
    try:
        # Each call returns the next operation, as two symbols and a space; None after the last one.
        while line := library.merges_next(learner):
            yield tuple(line.decode().split(" "))
    finally:
        library.merges_delete(learner)
