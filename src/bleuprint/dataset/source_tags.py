"""The tags of a corpus with several translation directions.

In such a corpus each source sentence begins with the tag of its target language, which is one word
(see config/directions.py). A corpus of one language pair has no tags: then everything here leaves
its sentences unchanged.
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

# How many characters of a sentence a message quotes.
_QUOTED_CHARACTERS = 60


class SourceTags:
    """The tags at the beginning of a corpus's source sentences.

    Attributes:
        languages: The target languages by tag; empty for a corpus of one language pair.
    """

    def __init__(
        self, languages: Mapping[str, str], segmentation: Callable[[], "Segmentation"]
    ) -> None:
        """Create the tags of a corpus.

        Args:
            languages: The target languages by tag.
            segmentation: A function that returns the segmentation of the sources. It is called only
                if it is needed, because reading it takes time.
        """
        self.languages = languages
        self._segmentation = segmentation

    def target_languages(self, only_target: str) -> list[str]:
        """Return the target languages; `only_target` if the corpus has one language pair."""
        return list(self.languages.values()) or [only_target]

    def target_of(self, source: Iterable[int], only_target: str) -> str:
        """Return the language into which a source sentence is translated.

        Args:
            source: The token ids of the source.
            only_target: The target language of a corpus of one language pair, which is also
                returned if the source has no tag.
        """
        if not self.languages:
            return only_target
        words = self._segmentation().decode(source)
        if not words:
            return only_target
        return self.languages.get(words[0], only_target)

    def prefix(self, target: str) -> list[int]:
        """Return the token ids that precede each source to translate into a language."""
        if not self.languages:
            return []
        tag_ids: list[int] = self._segmentation().encode([tag(target)]).tolist()
        # The last id is EOS.
        return tag_ids[:-1]

    def sentence_start(self, source: Sequence[int]) -> int:
        """Return the index of a source's first token after its tag."""
        if not self.languages:
            return 0
        is_word_end = self._segmentation().ends_word(np.array(source))
        # The tag is the first word. argmax returns the first index that is True.
        last_token_of_tag = int(is_word_end.argmax())
        return last_token_of_tag + 1

    def search_lengths(self, sources: Iterable[Sequence[int]], lengths: Lengths) -> Lengths:
        """Return the lengths of source sentences for a search.

        Args:
            sources: The token ids of each source, with EOS.
            lengths: The number of token ids of each source.

        Returns:
            The same lengths, but 1 for an empty sentence after a tag: decoding skips sentences of
            length 1, which consist of EOS alone.
        """
        if not self.languages:
            return lengths
        segmentation = self._segmentation()
        empty_sources = []
        for language_tag in self.languages:
            ids_with_eos = segmentation.encode([language_tag]).tolist()
            empty_sources.append(ids_with_eos)
        is_empty = [list(source) in empty_sources for source in sources]
        return np.where(is_empty, 1, lengths)

    def words(self, line: str) -> list[str]:
        """Return the words of a tokenized source without its tag."""
        words = line.split(" ")
        return words[1:] if self.languages else words

    def check_sentence(self, sentence: str, words: Iterable[str]) -> None:
        """Check that a sentence to translate does not contain a tag as a word.

        Raises:
            UserError: It contains one.
        """
        for word in words:
            if word in self.languages:
                quote = sentence[:_QUOTED_CHARACTERS]
                raise UserError(
                    f"{quote!r}: contains the word {word!r}, which is the tag of a target language"
                )
