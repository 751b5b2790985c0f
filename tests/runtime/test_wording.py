"""Counts agree with their nouns and verbs, and lists read as in a sentence."""

import pytest

from bleuprint.report.training_costs import machine_text
from bleuprint.runtime.wording import counted, is_or_are, join_with_and, list_first


@pytest.mark.parametrize(
    ("number", "noun", "plural", "expected"),
    [
        (0, "sentence", None, "0 sentences"),
        (1, "sentence", None, "1 sentence"),
        (1000, "target token", None, "1,000 target tokens"),
        (1, "corpus", "corpora", "1 corpus"),
        (2, "corpus", "corpora", "2 corpora"),
    ],
)
def test_a_count_of_one_has_the_singular(number, noun, plural, expected):
    assert counted(number, noun, plural) == expected


@pytest.mark.parametrize(
    ("threads", "expected"),
    [(1, "CPU, 1 x 1 thread"), ("1", "CPU, 1 x 1 thread"), ("1 + 2", "CPU, 1 x 1 + 2 threads")],
)
def test_a_machine_of_one_thread_has_the_singular(threads, expected):
    assert machine_text("CPU", 1, threads) == expected


@pytest.mark.parametrize(("number", "verb"), [(0, "are"), (1, "is"), (2, "are")])
def test_the_verb_agrees_with_the_count(number, verb):
    """In a message such as "1 line is empty" or "2 lines are empty"."""
    assert is_or_are(number) == verb


@pytest.mark.parametrize(
    ("items", "expected"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", 2, "c"], "a, 2 and c")],
    ids=["no item", "one item", "two items", "three items"],
)
def test_the_last_two_items_are_joined_with_and(items, expected):
    assert join_with_and(items) == expected


@pytest.mark.parametrize(
    ("items", "separator", "expected"),
    [
        ("ab", ", ", "a, b"),
        ("abcd", ", ", "a, b and 2 more"),
        ("abc", "; ", "a; b; and 1 more"),
    ],
)
def test_a_long_list_counts_the_items_after_the_limit(items, separator, expected):
    """The limit is two items here."""
    assert list_first(items, limit=2, separator=separator) == expected
