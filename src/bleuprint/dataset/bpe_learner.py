"""Learning the merges of byte-pair encoding incrementally, with the results of subword-nmt.

subword-nmt looks at all pairs of symbols for every merge. Here a heap holds the candidates;
counting and merging are subword-nmt's own, also where its counts of rare pairs, which it sets
aside for speed, differ from those in the text. native/merges.cpp does the same, ten times as fast.
Memory grows with the number of distinct words.
"""

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate, chain, islice, pairwise

import numpy as np
from subword_nmt.learn_bpe import (
    get_pair_statistics,
    prune_stats,
    replace_pair,
    update_pair_statistics,
)

from bleuprint import native
from bleuprint.dataset.subwords.bpe import END

Pair = tuple[str, ...]

_MIN_COUNT = 2
_PRUNE_EVERY = 100


def learn_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Yield at most `merges` merges of words that occur `counts` times, in their order.

    Words must not be empty or contain a space (U+0020). The last symbol of a word ends in "</w>".
    Pairs that occur only once are not merged.
    """
    library = native.library()
    if library is not None and all(map(_is_plain, counts)):
        yield from islice(_native_merges(library, counts), merges)
        return
    learner = _Learner(counts)
    for i in range(merges):
        best = learner.best()
        if best is None:
            learner.restore_stats(i)
            best = learner.best()
        if best is None or learner.stats[best] < _MIN_COUNT:
            return
        yield best
        learner.merge(best)
        if i % _PRUNE_EVERY == 0:
            prune_stats(learner.stats, learner.big_stats, learner.threshold)


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
    given = native.arguments(b"".join(words), ends, times, len(words))
    learner = ctypes.c_void_p(library.merges_new(*given))
    try:
        while line := library.merges_next(learner):
            yield tuple(line.decode().split(" "))
    finally:
        library.merges_delete(learner)


class _Learner:
    """The words with the merges so far, and the counts of neighboring symbols in them.

    `stats`: the count of each pair. Counts below `threshold` are moved to `big_stats` now and then;
    if such a pair occurs again, `stats` counts it from 0 (names as in subword-nmt).
    `heap`: (-count, sort keys of the symbols, pair) for every pair of `stats` that reaches
    `threshold`, with its count or an earlier, higher one; and outdated entries.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.words = [((*word[:-1], word[-1] + END), count) for word, count in counts.items()]
        self.stats, self.indices = get_pair_statistics(self.words)
        self.big_stats = self.stats.copy()
        self.threshold = max(self.stats.values(), default=0) / 10
        self.keys = _Keys(chain.from_iterable(word for word, _ in self.words))
        self._fill_heap()

    def best(self) -> Pair | None:
        """The most frequent pair, of several the last one; None if it is below `threshold`."""
        heap = self.heap
        while heap:
            negative, first, second, pair = heap[0]
            count = self.stats.get(pair, 0)
            if count == -negative:
                return pair
            if self.threshold <= count < -negative:
                heapreplace(heap, (-count, first, second, pair))
            else:
                heappop(heap)
        return None

    def merge(self, pair: Pair) -> None:
        """Merge each occurrence of `pair`, and update the counts of the pairs around it."""
        changes = replace_pair(pair, self.words, self.indices)
        update_pair_statistics(pair, changes, self.stats, self.indices)
        self.stats[pair] = 0
        merged = "".join(pair)
        risen = {near for _, word, *_ in changes for near in pairwise(word) if merged in near}
        for near in risen:
            if self.stats.get(near, 0) >= self.threshold:
                heappush(self.heap, self._entry(near))

    def restore_stats(self, i: int) -> None:
        """Restore all counts, since no frequent pair is left after `i` merges."""
        prune_stats(self.stats, self.big_stats, self.threshold)
        self.stats = self.big_stats.copy()
        self.threshold = max(self.stats.values(), default=0) * i / (i + 10000.0)
        prune_stats(self.stats, self.big_stats, self.threshold)
        self._fill_heap()

    def _fill_heap(self) -> None:
        frequent = (pair for pair, count in self.stats.items() if count >= self.threshold)
        self.heap = [self._entry(pair) for pair in frequent]
        heapify(self.heap)

    def _entry(self, pair: Pair) -> tuple[int, str, str, Pair]:
        return -self.stats[pair], self.keys[pair[0]], self.keys[pair[1]], pair


class _Keys(dict[str, str]):
    """Sort keys that reverse the order of symbols, since a heap returns the least entry.

    Each character becomes the one of its reversed rank; a last character after all others makes
    "ab" come before "a".
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        super().__init__()
        alphabet = sorted(set("".join(set(symbols))), reverse=True)
        self._ranks = {ord(character): rank for rank, character in enumerate(alphabet)}
        self._end = chr(len(alphabet))

    def __missing__(self, symbol: str) -> str:
        key = self[symbol] = symbol.translate(self._ranks) + self._end
        return key
