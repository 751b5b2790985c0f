"""Learning the merges of byte-pair encoding, those of subword-nmt.

subword-nmt looks at all pairs of symbols for every merge; native/merges.cpp keeps them in a heap
and takes a twentieth of the time. Where it was not built, subword-nmt's own code learns them.
Memory grows with the number of distinct words.
"""

import ctypes
from collections.abc import Iterator, Mapping
from io import StringIO
from itertools import accumulate, islice

import numpy as np

from bleuprint import native

Pair = tuple[str, ...]


def learn_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Yield at most `merges` merges of words that occur `counts` times, in their order.

    Words must not be empty or contain a space (U+0020). The last symbol of a word ends in "</w>".
    Pairs that occur only once are not merged.
    """
    library = native.library()
    if library is not None and all(map(_is_plain, counts)):
        yield from islice(_native_merges(library, counts), merges)
    elif any(len(word) > 1 for word in counts):  # subword-nmt needs a pair
        from subword_nmt.learn_bpe import learn_bpe

        codes = StringIO()
        learn_bpe([f"{word} {n}" for word, n in counts.items()], codes, merges, is_dict=True)
        yield from (tuple(line.split(" ")) for line in codes.getvalue().split("\n")[1:-1])


def _is_plain(word: str) -> bool:
    """Not with white space, which subword-nmt takes for the end of a symbol, or NUL, that of C."""
    return word.split() == [word] and "\0" not in word


def _native_merges(library: ctypes.CDLL, counts: Mapping[str, int]) -> Iterator[Pair]:
    """Yield all merges that `native/merges.cpp` finds."""
    words = [word.encode() for word in counts]
    ends = np.fromiter(accumulate(map(len, words)), np.int64, len(words))
    times = np.fromiter(counts.values(), np.int64, len(words))
    library.merges_new.restype = ctypes.c_void_p
    library.merges_next.restype = ctypes.c_char_p
    given = native.c_arguments(b"".join(words), ends, times, len(words))
    learner = ctypes.c_void_p(library.merges_new(*given))
    try:
        while line := library.merges_next(learner):
            yield tuple(line.decode().split(" "))
    finally:
        library.merges_delete(learner)
