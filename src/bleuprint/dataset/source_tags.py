"""The tags of a corpus with several translation directions.

In such a corpus each source sentence begins with the tag of its target language, which is one word
(see text/language_tag.py). A corpus of one language pair has no tags: then everything here leaves
its sentences unchanged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bleuprint.runtime.errors import UserError
from bleuprint.text.language_tag import tag

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
        """Create the tags of a corpus with several translation directions.

        Args:
            languages: The target languages by tag, such as `fr` by `<2fr>`; empty for a corpus of
                one language pair.
            segmentation: A function that returns how source words are split into tokens. It is
                called only if it is needed, because reading the vocabulary takes time.
        """
        self.languages = languages
        self._segmentation = segmentation

    def target_languages(self, only_target: str) -> list[str]:
        """Return the target languages; `only_target` if the corpus has one language pair."""
        return list(self.languages.values()) or [only_target]

    def target_of(self, source: Iterable[int], only_target: str) -> str:
        """Return the language into which a source sentence is translated.

        In a corpus with several directions, the first word of a source is a tag that names it:
        `<2fr>` for French.

        Args:
            source: The token ids of the source.
            only_target: What to return for a source without a tag, as in a corpus of one language
                pair: the target language of that pair.
        """
        if not self.languages:
            return only_target
        words = self._segmentation().decode(source)
        if not words:
            return only_target
        return self.languages.get(words[0], only_target)

    def prefix(self, target: str) -> list[int]:
        """Return the token ids of the tag that requests a translation into a language.

        They must precede the ids of the source sentence.

        Returns:
            The ids; an empty list for a corpus of one language pair, which has no tags.
        """
        if not self.languages:
            return []
        tag_ids: list[int] = self._segmentation().encode([tag(target)]).tolist()
        return tag_ids[:-1]  # `encode` adds EOS, but the sentence goes on after the tag.

    def sentence_start(self, source: Sequence[int]) -> int:
        """Return the index of the first token after the tag of a source sentence.

        A tag is one word, but may be split into several tokens. The result is 0 in a corpus of one
        language pair, which has no tags.

        Args:
            source: The token ids of the source.
        """
        if not self.languages:
            return 0
        is_word_end = self._segmentation().ends_word(np.array(source))
        # The tag is the first word. `argmax` returns the first index that is True.
        last_token_of_tag = int(is_word_end.argmax())
        return last_token_of_tag + 1

    def search_lengths(self, sources: Iterable[Sequence[int]], lengths: Lengths) -> Lengths:
        """Return the lengths of source sentences, with 1 for all that are empty.

        The search skips sentences of length 1, which consist of EOS alone. A sentence that consists
        of a tag and EOS is empty, too; its length is set to 1, so that it is skipped as well.

        Args:
            sources: The token ids of each source, with EOS.
            lengths: The number of token ids of each source.
        """
        if not self.languages:
            return lengths
        segmentation = self._segmentation()
        empty_sources = []
        for language_tag in self.languages:
            tag_and_eos = segmentation.encode([language_tag]).tolist()
            empty_sources.append(tag_and_eos)
        is_empty = [list(source) in empty_sources for source in sources]
        return np.where(is_empty, 1, lengths)

    def words_without_tag(self, line: str) -> list[str]:
        """Return the words of a tokenized source sentence, without the tag that may precede it."""
        words = line.split(" ")
        if not self.languages:
            return words  # A corpus of one language pair has no tags.
        _tag, *sentence_words = words
        return sentence_words

    def check_sentence(self, sentence: str, words: Iterable[str]) -> None:
        """Check that a sentence to translate does not contain the tag of a target language.

        The model would take the tag as a request to translate into that language.

        Args:
            sentence: The sentence, for the message.
            words: Its words.

        Raises:
            UserError: One of the words is a tag.
        """
        for word in words:
            if word in self.languages:
                quote = sentence[:_QUOTED_CHARACTERS]
                raise UserError(
                    f"{quote!r} contains the word {word!r}, which is the tag of a target language"
                )
