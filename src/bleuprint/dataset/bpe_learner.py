"""Learning the merges of byte-pair encoding incrementally, with the results of subword-nmt.

subword-nmt scans all pairs of symbols for every merge. Here a heap holds the candidates, so that
the cost of a merge is that of the words it changes. The merges are equal down to ties: subword-nmt
prunes rare pairs for speed, after which their counts can differ from those in the text, and this
is reproduced. Memory grows with the number of distinct words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, pairwise

from bleuprint.dataset.subwords.bpe import END

Pair = tuple[str, ...]

_MIN_COUNT = 2
_PRUNE_EVERY = 100
_SPACE = re.compile(r"\s")


def learn_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """Yield at most `merges` merges of words that occur `counts` times, in their order.

    Words must not be empty or contain a space (U+0020). The last symbol of a word ends in "</w>".
    Pairs that occur only once are not merged.
    """
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
            learner.prune_stats()


class _Learner:
    """The words with the merges so far, and the counts of neighboring symbols in them.

    `stats`: the count of each pair. Counts below `threshold` are moved to `big_stats` now and then;
    if such a pair occurs again, `stats` counts it from 0 (names as in subword-nmt).
    `indices`: how often each pair occurs in each word, by the word's index.
    `heap`: (-count, sort keys of the symbols, pair) for every pair of `stats` that reaches
    `threshold`, with its count or an earlier, higher one; and outdated entries.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.words = [(*word[:-1], word[-1] + END) for word in counts]
        self.counts = list(counts.values())
        # In a word with a tab, say, subword-nmt treats the rest as a separate symbol.
        self.spaced = {j for j, word in enumerate(counts) if _SPACE.search(word)}
        self.stats: defaultdict[Pair, int] = defaultdict(int)
        self.indices: defaultdict[Pair, defaultdict[int, int]]
        self.indices = defaultdict(_zero_counts)
        for j, (word, count) in enumerate(zip(self.words, self.counts, strict=True)):
            for pair in pairwise(word):
                self.stats[pair] += count
                self.indices[pair][j] += 1
        self.big_stats = self.stats.copy()
        self.threshold = max(self.stats.values(), default=0) / 10
        self.keys = _Keys(chain.from_iterable(self.words))
        self._fill_heap()

    def best(self) -> Pair | None:
        """The most frequent pair, of equals the last one; None if it is below `threshold`."""
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
        merged = "".join(pair)
        risen: set[Pair] = set()
        for j, occurrences in self.indices.pop(pair).items():
            if occurrences > 0:
                old = self.words[j]
                new = self._merge_in_word(pair, merged, j)
                self.words[j] = _merge_in_text(pair, old) if j in self.spaced else new
                self._count_around(merged, j, risen)
        self.stats[pair] = 0
        for other in risen:
            if self.stats[other] >= self.threshold:
                heappush(self.heap, self._entry(other))

    def _merge_in_word(self, pair: Pair, merged: str, j: int) -> tuple[str, ...]:
        """Word j with the pair merged; subtracts the pairs around it from the counts."""
        word, count = self.words[j], self.counts[j]
        stats, indices = self.stats, self.indices
        first, second = pair
        new: list[str] = []
        done, last = 0, len(word) - 1
        for i in range(last):
            # A A A contains one pair A A, not two.
            if word[i] != first or i < done or word[i + 1] != second:
                continue
            if i:
                before = word[i - 1 : i + 1]
                stats[before] -= count
                indices[before][j] -= 1
            # In A B A B the pair B A is subtracted as the one before the second A B.
            if i + 1 < last and word[i + 2 : i + 4] != pair:
                after = word[i + 1 : i + 3]
                stats[after] -= count
                indices[after][j] -= 1
            new += word[done:i]
            new.append(merged)
            done = i + 2
        new += word[done:]
        return tuple(new)

    def _count_around(self, merged: str, j: int, risen: set[Pair]) -> None:
        """Add the pairs around `merged` in word j to the counts and to `risen`."""
        word, count = self.words[j], self.counts[j]
        stats, indices = self.stats, self.indices
        last = len(word) - 1
        for i, symbol in enumerate(word):
            if symbol != merged:
                continue
            if i:
                before = word[i - 1 : i + 1]
                stats[before] += count
                indices[before][j] += 1
                risen.add(before)
            if i < last and word[i + 1] != merged:
                after = word[i : i + 2]
                stats[after] += count
                indices[after][j] += 1
                risen.add(after)

    def prune_stats(self) -> None:
        """Move counts below `threshold` to `big_stats`; a negative one is a change since then."""
        for pair, count in [entry for entry in self.stats.items() if entry[1] < self.threshold]:
            del self.stats[pair]
            self.big_stats[pair] = count + self.big_stats[pair] if count < 0 else count

    def restore_stats(self, i: int) -> None:
        """Restore all counts, since no frequent pair is left after `i` merges."""
        self.prune_stats()
        self.stats = self.big_stats.copy()
        self.threshold = max(self.stats.values(), default=0) * i / (i + 10000.0)
        self.prune_stats()
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


def _zero_counts() -> defaultdict[int, int]:
    return defaultdict(int)


def _merge_in_text(pair: Pair, word: tuple[str, ...]) -> tuple[str, ...]:
    """Merge the pair in a word with white space in its symbols, by subword-nmt's expression."""
    pair_in_text = re.compile(rf"(?<!\S){re.escape(' '.join(pair))}(?!\S)")
    return tuple(pair_in_text.sub(lambda _: "".join(pair), " ".join(word)).split(" "))
