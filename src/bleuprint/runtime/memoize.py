"""What has been worked out once, by word: most of a text is words it has had before."""

from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")

# Words of a text that are remembered: some tens of megabytes at most; longer ones hardly come
# again.
MOST = 200_000
LONGEST = 50


class Remembered(dict[str, R]):
    """A function of words as a mapping: asked for a word that it does not hold, it calls it.

    Looking a word up takes a third of the time that functools.lru_cache needs for it.
    """

    def __init__(self, function: Callable[[str], R]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, word: str) -> R:
        found = self._function(word)
        if len(word) <= LONGEST:
            if len(self) >= MOST:  # all are forgotten
                self.clear()
            self[word] = found
        return found
