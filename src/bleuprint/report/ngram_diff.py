"""N-grams of the references that one system translates more often than another.

As compare-mt has them (Neubig et al. 2019): an n-gram of a line counts as often as it is in the
translation, at most as often as in the reference; n-grams are ranked by (a + 1) / (a + b + 2), with
the counts a and b of the two systems. Those that differ by chance are left out, by a sign test over
the lines in which one system has an n-gram more often than the other.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bleuprint.scoring.significance import SIGNIFICANT

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
) -> list[Counter[Ngram]]:
    """How often each n-gram of the references is in the translation of the same line, by line."""
    return [
        ngrams(tokenize(output).split()) & ngrams(tokenize(reference).split())
        for output, reference in zip(outputs, references, strict=True)
    ]


def most_ahead(
    ahead: Sequence[Counter[Ngram]],
    behind: Sequence[Counter[Ngram]],
    references: Counter[Ngram],
    most: int,
) -> list[NgramDifference]:
    """The n-grams in which one system is most ahead of the other; of equal ones the longest.

    Those within one that is listed with the same counts are left out. `ahead` and `behind` are of
    `matches`; `references` counts n-grams in all lines.
    """
    more, fewer = _lines_ahead(ahead, behind), _lines_ahead(behind, ahead)
    found = [n for n in more if sign_test(more[n], fewer[n]) < SIGNIFICANT and more[n] > fewer[n]]
    counts = {n: (sum(line[n] for line in ahead), sum(line[n] for line in behind)) for n in found}
    found.sort(key=lambda n: (-(counts[n][0] + 1) / (sum(counts[n]) + 2), -len(n), n))
    listed: list[NgramDifference] = []
    for ngram in found:
        each = NgramDifference(ngram, *counts[ngram], references[ngram])
        if not any(_within(each, other) for other in listed):
            listed.append(each)
        if len(listed) == most:
            break
    return listed


def _lines_ahead(
    ahead: Sequence[Counter[Ngram]], behind: Sequence[Counter[Ngram]]
) -> Counter[Ngram]:
    """The number of lines in which a system has an n-gram more often than the other."""
    found = Counter[Ngram]()
    for one, other in zip(ahead, behind, strict=True):
        found.update((one - other).keys())
    return found


def sign_test(more: int, fewer: int) -> float:
    """The two-sided p-value that differences in one direction are as probable as in the other."""
    from scipy.special import bdtr  # scipy.stats would take half a second to load

    return min(1.0, 2 * float(bdtr(min(more, fewer), more + fewer, 0.5)))


def _within(one: NgramDifference, other: NgramDifference) -> bool:
    same = (one.ahead, one.behind) == (other.ahead, other.behind)
    return same and one.ngram in _parts(other.ngram, len(one.ngram))


def _parts(ngram: Ngram, length: int) -> Iterator[Ngram]:
    for start in range(len(ngram) - length + 1):
        yield ngram[start : start + length]
