"""N-gram differences, on counts by hand."""

from collections import Counter

import pytest
from scipy.stats import binomtest

from bleuprint.report.ngram_diff import (
    Ngram,
    NgramDifference,
    matches,
    most_ahead,
    ngrams,
    sign_test,
)


def test_ngrams_of_a_line() -> None:
    assert ngrams(["a", "b", "a"]) == {
        **{("a",): 2, ("b",): 1},
        **{("a", "b"): 1, ("b", "a"): 1, ("a", "b", "a"): 1},
    }
    assert not ngrams([])
    assert max(map(len, ngrams(list("abcdefgh")))) == 4


def test_a_match_counts_as_often_as_in_the_reference_line_by_line() -> None:
    found = matches(["a a a", "b"], ["a a", "a"], str)
    assert found == [{("a",): 2, ("a", "a"): 1}, {}]
    (line,) = matches(["A."], ["A ."], lambda text: text.replace(".", " ."))
    assert line["A", "."] == 1


def counted(**lines: int) -> list[Counter[Ngram]]:
    """Ten lines, of which the first few have each n-gram (a letter a token) once."""
    return [Counter({tuple(n): 1 for n, many in lines.items() if i < many}) for i in range(10)]


def test_the_order_is_that_of_compare_mt() -> None:
    """(a + 1) / (a + b + 2): 0.917, 0.9, 0.667; ties: the longest first, parts left out."""
    ahead, behind = counted(x=10, y=8, pq=8, p=8, z=9, w=9), counted(x=0, z=4, w=3)
    references = Counter(dict.fromkeys([n for line in ahead for n in line], 10))
    found = most_ahead(ahead, behind, references, 8)
    assert found == [
        NgramDifference(("x",), 10, 0, 10),
        NgramDifference(("p", "q"), 8, 0, 10),
        NgramDifference(("y",), 8, 0, 10),
        NgramDifference(("w",), 9, 3, 10),  # z is ahead in five lines: p is 0.0625
    ]
    assert most_ahead(ahead, behind, references, 1) == found[:1]
    assert most_ahead(behind, ahead, references, 8) == []


def test_lines_in_which_the_other_is_ahead_count_against_it() -> None:
    """Nine lines to one: p = 2 (1 + 10) / 2^10; eight to two: 2 (1 + 10 + 45) / 2^10 = 0.109."""
    for fewer, listed in ((1, 1), (2, 0)):
        lines = [Counter({("x",): 1}) for _ in range(10 - fewer)]
        none = [Counter[Ngram]()]
        ahead, behind = lines + none * fewer, none * (10 - fewer) + lines[:fewer]
        assert len(most_ahead(ahead, behind, Counter({("x",): 10}), 8)) == listed


@pytest.mark.parametrize("more", range(8))
@pytest.mark.parametrize("fewer", range(8))
def test_the_sign_test_is_scipys(more: int, fewer: int) -> None:
    expected = binomtest(more, more + fewer).pvalue if more + fewer else 1.0
    assert sign_test(more, fewer) == pytest.approx(expected)
