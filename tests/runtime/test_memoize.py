"""A cache for functions of words, whose size is limited."""

import pytest

from bleuprint.runtime import memoize
from bleuprint.runtime.memoize import BoundedCache


@pytest.fixture
def calls():
    """The words for which the cached function was called."""
    return []


@pytest.fixture
def upper_case(calls):
    """A cache of the function that writes a word in capitals."""

    def compute(word):
        calls.append(word)
        return word.upper()

    return BoundedCache(compute)


def test_the_result_for_a_repeated_word_is_computed_once(upper_case, calls):
    results = [upper_case["a"], upper_case["b"], upper_case["a"]]

    assert results == ["A", "B", "A"]
    assert calls == ["a", "b"]


def test_the_result_for_a_long_word_is_not_stored(upper_case, calls, monkeypatch):
    """Long words are rarely repeated, and would take memory."""
    monkeypatch.setattr(memoize, "MAX_LENGTH", 4)

    results = [upper_case["fifth"], upper_case["fifth"], upper_case["four"], upper_case["four"]]

    assert results == ["FIFTH", "FIFTH", "FOUR", "FOUR"]
    assert calls == ["fifth", "fifth", "four"]


def test_a_full_cache_is_emptied_before_the_next_word(upper_case, monkeypatch):
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)

    for word in ("a", "b", "c", "d"):
        assert upper_case[word] == word.upper()

    assert list(upper_case) == ["d"]
