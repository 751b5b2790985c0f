"""The tags of a corpus with several directions, in its sentences of words and of token ids.

Each source begins with the tag of its target language (see config/directions.py). A corpus of one
language pair has no tags: then everything here leaves its sentences as they are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bleuprint.config.directions import tag
from bleuprint.runtime.errors import UserError

# Imported where it is used: reading ids does not need it, and importing takes half a second.
if TYPE_CHECKING:
    from bleuprint.dataset.subwords.segmentation import Segmentation


Lengths = npt.NDArray[np.int64]


class SourceTags:
    """The words that begin the sources of a corpus.

    Attributes:
        languages: The target languages by tag; empty for one language pair.
    """

    def __init__(
        self, languages: Mapping[str, str], segmentation: Callable[[], "Segmentation"]
    ) -> None:
        """Create the tags of a corpus; `segmentation` gives that of its sources."""
        self.languages = languages
        self._segmentation = segmentation

    def target_languages(self, only_target: str) -> list[str]:
        """Return the languages of the translations; `only_target` for one language pair."""
        return list(self.languages.values()) or [only_target]

    def target_of(self, source: Iterable[int], only_target: str) -> str:
        """Return the language of a source's translation, of which `source` are the token ids."""
        if not self.languages:
            return only_target
        words = self._segmentation().decode(source)
        return self.languages.get(words[0], only_target) if words else only_target

    def prefix(self, target: str) -> list[int]:
        """Return the token ids that precede each source that is translated into a language."""
        if not self.languages:
            return []
        ids: list[int] = self._segmentation().encode([tag(target)]).tolist()
        return ids[:-1]  # without EOS

    def sentence_start(self, source: Sequence[int]) -> int:
        """Return how many token ids of a source precede its sentence."""
        if not self.languages:
            return 0
        ends_word = self._segmentation().ends_word(np.array(source))
        return int(ends_word.argmax()) + 1

    def search_lengths(self, sources: Iterable[Sequence[int]], lengths: Lengths) -> Lengths:
        """Return the lengths of the sources of a set for a search.

        Args:
            sources: The token ids of each source, with EOS.
            lengths: The number of token ids of each.

        Returns:
            These lengths, but 1 for an empty sentence, which engines do not search.
        """
        if not self.languages:
            return lengths
        encode = self._segmentation().encode
        tags = [encode([each]).tolist() for each in self.languages]  # each with EOS
        is_empty = [list(source) in tags for source in sources]
        return np.where(is_empty, 1, lengths)

    def words(self, line: str) -> list[str]:
        """Return the words of a tokenized source without its tag."""
        words = line.split(" ")
        return words[1:] if self.languages else words

    def check_sentence(self, sentence: str, words: Iterable[str]) -> None:
        """Raise UserError if a sentence to translate contains a tag as a word."""
        for word in words:
            if word in self.languages:
                raise UserError(f"{sentence[:60]!r}: has {word!r}, a tag, as a word")
