"""A bounded cache for functions of words: most words of a text repeat."""

from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

# The number of words in a cache, which takes some tens of megabytes at most.
MAX_WORDS = 200_000
# Longer words, in characters, are rarely repeated.
MAX_LENGTH = 50


class BoundedCache(dict[str, R]):
    """The results of a function of words: `cache[word]` calls the function for a new word.

    A lookup in a dictionary takes a third of the time of functools.lru_cache.
    """

    def __init__(self, function: Callable[[str], R]) -> None:
        """Create an empty cache for the results of a function.

        Args:
            function: The function; it takes a word and returns the result for it.
        """
        super().__init__()
        self._function = function

    def __missing__(self, word: str) -> R:
        """Compute the result for a word that is not in the cache, and keep it.

        Python calls this method for `cache[word]` if a dictionary does not contain the key. To
        limit the memory, a full cache is emptied; the frequent words are soon in it again. Long
        words are rarely repeated, and are not kept.
        """
        result = self._function(word)
        if len(word) <= MAX_LENGTH:
            if len(self) >= MAX_WORDS:
                self.clear()
            self[word] = result
        return result
