import pytest

from bleuprint.runtime import memoize
from bleuprint.runtime.memoize import Remembered


@pytest.fixture
def asked(monkeypatch):
    """A function that is remembered for three words of up to four characters, and its calls."""
    monkeypatch.setattr(memoize, "MOST", 3)
    monkeypatch.setattr(memoize, "LONGEST", 4)
    calls = []

    def shout(word):
        calls.append(word)
        return word.upper()

    return Remembered(shout), calls


def test_a_word_is_worked_out_once(asked):
    words, calls = asked
    assert [words[word] for word in ("a", "four", "a", "four")] == ["A", "FOUR", "A", "FOUR"]
    assert calls == ["a", "four"]


def test_a_long_word_is_worked_out_each_time_and_not_kept(asked):
    words, calls = asked
    assert words["fifth"] == words["fifth"] == "FIFTH"
    assert calls == ["fifth"] * 2 and not words


def test_when_there_are_too_many_all_are_forgotten(asked):
    words, calls = asked
    for word in "abcab":
        assert words[word] == word.upper()
    assert list(words) == list("abc") == calls
    assert words["d"] == "D" and list(words) == ["d"]
    assert words["a"] == "A" and calls == list("abcda")
