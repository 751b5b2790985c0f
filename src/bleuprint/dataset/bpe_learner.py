"""Learning the merges of byte-pair encoding: subword-nmt's, found incrementally.

subword-nmt looks through all pairs of symbols for every merge. Here a heap holds those that can
be next, so that a merge costs as much as the words that it changes. The merges are the same to
the last tie: subword-nmt sets rare pairs aside for speed, their counts are not always those of
the text when they come back, and so it is here. Memory grows with the number of different words.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, pairwise

from bleuprint.dataset.subwords.bpe import END

Pair = tuple[str, ...]

_RAREST = 2
_SET_ASIDE_EVERY = 100
_SPACE = re.compile(r"\s")


def learn_merges(counts: Mapping[str, int], merges: int) -> Iterator[Pair]:
    """At most `merges` merges of words that occur `counts` times, in the order they are made.

    Words are not empty and hold no space (U+0020). The last symbol of a word ends in "</w>".
    Pairs that occur once only are not merged.
    """
    learner = _Learner(counts)
    for i in range(merges):
        best = learner.best()
        if best is None:
            learner.take_all_back(i)
            best = learner.best()
        if best is None or learner.stats[best] < _RAREST:
            return
        yield best
        learner.merge(best)
        if i % _SET_ASIDE_EVERY == 0:
            learner.set_rare_aside()


class _Learner:
    """The words as merged so far, and the counts of the pairs of neighbouring symbols in them.

    `stats`: how often each pair occurs; those below `threshold` are moved to `aside` from time
    to time, and counted from nothing in `stats` when they change after that.
    `places`: how often each pair occurs in each word, by the word's number.
    `heap`: (-count, keys of the symbols, pair) for every pair of `stats` that reaches
    `threshold`, its count as it is or as it was when it was higher; and entries out of date.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.words = [(*word[:-1], word[-1] + END) for word in counts]
        self.counts = list(counts.values())
        # In a word with a tab, say, subword-nmt takes what follows it for a symbol of its own.
        self.spaced = {j for j, word in enumerate(counts) if _SPACE.search(word)}
        self.stats: defaultdict[Pair, int] = defaultdict(int)
        self.places: defaultdict[Pair, defaultdict[int, int]]
        self.places = defaultdict(_nothing)
        for j, (word, count) in enumerate(zip(self.words, self.counts, strict=True)):
            for pair in pairwise(word):
                self.stats[pair] += count
                self.places[pair][j] += 1
        self.aside = self.stats.copy()
        self.threshold = max(self.stats.values(), default=0) / 10
        self.keys = _Keys(chain.from_iterable(self.words))
        self._fill_heap()

    def best(self) -> Pair | None:
        """The most frequent pair, of several the last in order; None if it is below `threshold`."""
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
        """Make one symbol of `pair` wherever it stands, and count the pairs around it anew."""
        merged = "".join(pair)
        risen: set[Pair] = set()
        for j, occurrences in self.places.pop(pair).items():
            if occurrences > 0:
                old = self.words[j]
                new = self._merged(pair, merged, j)
                self.words[j] = _merged_in_text(pair, old) if j in self.spaced else new
                self._count_around(merged, j, risen)
        self.stats[pair] = 0
        for other in risen:
            if self.stats[other] >= self.threshold:
                heappush(self.heap, self._entry(other))

    def _merged(self, pair: Pair, merged: str, j: int) -> tuple[str, ...]:
        """Word j with the pair merged; the pairs around it are counted off."""
        word, count = self.words[j], self.counts[j]
        stats, places = self.stats, self.places
        first, second = pair
        new: list[str] = []
        done, last = 0, len(word) - 1
        for i in range(last):
            # A A A holds one pair A A, not two.
            if word[i] != first or i < done or word[i + 1] != second:
                continue
            if i:
                before = word[i - 1 : i + 1]
                stats[before] -= count
                places[before][j] -= 1
            # In A B A B the pair B A comes before the second A B and is counted off there.
            if i + 1 < last and word[i + 2 : i + 4] != pair:
                after = word[i + 1 : i + 3]
                stats[after] -= count
                places[after][j] -= 1
            new += word[done:i]
            new.append(merged)
            done = i + 2
        new += word[done:]
        return tuple(new)

    def _count_around(self, merged: str, j: int, risen: set[Pair]) -> None:
        """Count the pairs around `merged` in word j; they are added to `risen`."""
        word, count = self.words[j], self.counts[j]
        stats, places = self.stats, self.places
        last = len(word) - 1
        for i, symbol in enumerate(word):
            if symbol != merged:
                continue
            if i:
                before = word[i - 1 : i + 1]
                stats[before] += count
                places[before][j] += 1
                risen.add(before)
            if i < last and word[i + 1] != merged:
                after = word[i : i + 2]
                stats[after] += count
                places[after][j] += 1
                risen.add(after)

    def set_rare_aside(self) -> None:
        """Move the counts below `threshold`; a negative one is what a count set aside has lost."""
        for pair, count in [entry for entry in self.stats.items() if entry[1] < self.threshold]:
            del self.stats[pair]
            self.aside[pair] = count + self.aside[pair] if count < 0 else count

    def take_all_back(self, i: int) -> None:
        """Go on with all counts, as the frequent pairs are used up after `i` merges."""
        self.set_rare_aside()
        self.stats = self.aside.copy()
        self.threshold = max(self.stats.values(), default=0) * i / (i + 10000.0)
        self.set_rare_aside()
        self._fill_heap()

    def _fill_heap(self) -> None:
        frequent = (pair for pair, count in self.stats.items() if count >= self.threshold)
        self.heap = [self._entry(pair) for pair in frequent]
        heapify(self.heap)

    def _entry(self, pair: Pair) -> tuple[int, str, str, Pair]:
        return -self.stats[pair], self.keys[pair[0]], self.keys[pair[1]], pair


class _Keys(dict[str, str]):
    """For each symbol a text by which symbols sort backwards, since a heap gives the least first.

    Each character gives way to that of its rank from the last one, and a character after all
    others ends the text, so that of "a" and "ab" the longer comes first.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        super().__init__()
        alphabet = sorted(set("".join(set(symbols))), reverse=True)
        self._ranks = {ord(character): rank for rank, character in enumerate(alphabet)}
        self._end = chr(len(alphabet))

    def __missing__(self, symbol: str) -> str:
        key = self[symbol] = symbol.translate(self._ranks) + self._end
        return key


def _nothing() -> defaultdict[int, int]:
    return defaultdict(int)


def _merged_in_text(pair: Pair, word: tuple[str, ...]) -> tuple[str, ...]:
    """A word with white space in its symbols, merged where subword-nmt finds the pair in it."""
    pair_in_text = re.compile(rf"(?<!\S){re.escape(' '.join(pair))}(?!\S)")
    return tuple(pair_in_text.sub(lambda _: "".join(pair), " ".join(word)).split(" "))
