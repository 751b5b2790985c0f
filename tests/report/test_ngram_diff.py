"""N-gram differences, on counts by hand."""

from collections import Counter

from bleuprint.report.ngram_diff import NgramDifference, matches, most_ahead, ngrams


def test_ngrams_of_a_line() -> None:
    assert ngrams(["a", "b", "a"]) == {
        **{("a",): 2, ("b",): 1},
        **{("a", "b"): 1, ("b", "a"): 1, ("a", "b", "a"): 1},
    }
    assert not ngrams([])
    assert max(map(len, ngrams(list("abcdefgh")))) == 4


def test_a_match_counts_as_often_as_in_the_reference_line_by_line() -> None:
    found = matches(["a a a", "b"], ["a a", "a"], str)
    assert found == {("a",): 2, ("a", "a"): 1}
    assert matches(["A."], ["A ."], lambda text: text.replace(".", " ."))[("A", ".")] == 1


def test_the_order_is_that_of_compare_mt() -> None:
    """(a + 1) / (a + b + 2): 0.833, 0.75, 0.667; ties: the longest first, parts left out."""
    ahead = Counter({("x",): 4, ("y",): 2, ("p", "q"): 1, ("p",): 1, ("q",): 1, ("z",): 3})
    behind = Counter({("q",): 0, ("z",): 3})
    references = Counter(dict.fromkeys(ahead, 5))
    found = most_ahead(ahead, behind, references, 8)
    assert found == [
        NgramDifference(("x",), 4, 0, 5),
        NgramDifference(("y",), 2, 0, 5),
        NgramDifference(("p", "q"), 1, 0, 5),
    ]
    assert most_ahead(ahead, behind, references, 1) == found[:1]
    assert most_ahead(behind, ahead, references, 8) == []
