from bleuprint.runtime import memoize
from bleuprint.runtime.memoize import BoundedCache


def test_words_are_computed_once_unless_long_and_a_full_cache_is_cleared(monkeypatch):
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)
    monkeypatch.setattr(memoize, "MAX_LENGTH", 4)
    calls = []
    words = BoundedCache(lambda word: calls.append(word) or word.upper())
    for word in ("a", "b", "fifth", "a", "fifth", "c", "d"):
        assert words[word] == word.upper()
    assert calls == ["a", "b", "fifth", "fifth", "c", "d"]
    assert list(words) == ["d"]
