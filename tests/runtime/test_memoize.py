import pytest

from bleuprint.runtime import memoize
from bleuprint.runtime.memoize import BoundedCache


@pytest.fixture
def cached(monkeypatch):
    """A cache of three words of up to four characters, and the calls of its function."""
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)
    monkeypatch.setattr(memoize, "MAX_LENGTH", 4)
    calls = []

    def shout(word):
        calls.append(word)
        return word.upper()

    return BoundedCache(shout), calls


def test_a_long_word_is_computed_each_time_and_not_kept(cached):
    words, calls = cached
    assert words["fifth"] == words["fifth"] == "FIFTH"
    assert calls == ["fifth"] * 2 and not words


def test_a_full_cache_is_cleared(cached):
    words, calls = cached
    for word in "abcab":
        assert words[word] == word.upper()
    assert list(words) == list("abc") == calls
    assert words["d"] == "D" and list(words) == ["d"]
    assert words["a"] == "A" and calls == list("abcda")
