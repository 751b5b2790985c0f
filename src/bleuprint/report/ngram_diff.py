"""N-grams of the references that one system translates more often than another.

As compare-mt has them (Neubig et al. 2019): an n-gram of a line counts as often as it is in the
translation, at most as often as in the reference; n-grams are ranked by (a + 1) / (a + b + 2), with
the counts a and b of the two systems.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

LONGEST = 4

Ngram = tuple[str, ...]


@dataclass(frozen=True)
class NgramDifference:
    """An n-gram, and how often two systems, one ahead of the other, and the references have it."""

    ngram: Ngram
    ahead: int
    behind: int
    references: int


def ngrams(tokens: Sequence[str]) -> Counter[Ngram]:
    """The n-grams of up to LONGEST tokens."""
    lengths = range(1, LONGEST + 1)
    return Counter(
        tuple(tokens[start : start + n]) for n in lengths for start in range(len(tokens) - n + 1)
    )


def matches(
    outputs: Sequence[str], references: Sequence[str], tokenize: Callable[[str], str]
) -> Counter[Ngram]:
    """How often each n-gram of the references is in the translations of the same lines."""
    found = Counter[Ngram]()
    for output, reference in zip(outputs, references, strict=True):
        found.update(ngrams(tokenize(output).split()) & ngrams(tokenize(reference).split()))
    return found


def most_ahead(
    ahead: Counter[Ngram], behind: Counter[Ngram], references: Counter[Ngram], most: int
) -> list[NgramDifference]:
    """The n-grams in which one system is most ahead of the other; of equal ones the longest.

    Those within one that is listed with the same counts are left out. The arguments are of
    `matches`, that of the references with themselves.
    """
    more = [ngram for ngram, count in ahead.items() if count > behind[ngram]]
    more.sort(key=lambda n: (-(ahead[n] + 1) / (ahead[n] + behind[n] + 2), -len(n), n))
    listed: list[NgramDifference] = []
    for ngram in more:
        each = NgramDifference(ngram, ahead[ngram], behind[ngram], references[ngram])
        if not any(_within(each, other) for other in listed):
            listed.append(each)
        if len(listed) == most:
            break
    return listed


def _within(one: NgramDifference, other: NgramDifference) -> bool:
    same = (one.ahead, one.behind) == (other.ahead, other.behind)
    return same and one.ngram in _parts(other.ngram, len(one.ngram))


def _parts(ngram: Ngram, length: int) -> Iterator[Ngram]:
    for start in range(len(ngram) - length + 1):
        yield ngram[start : start + length]
