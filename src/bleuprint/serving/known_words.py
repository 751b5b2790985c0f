"""Which words of a text a system has met in its training text."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Literal, TypeAlias

import regex

from bleuprint.config import paths
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import UNK
from bleuprint.runtime.memoize import BoundedCache
from bleuprint.runtime.progress import track
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import read_lines

MessageKind: TypeAlias = Literal["note", "warning"]

# A message names so many unknown words, and shows so many characters of each.
_NAMED_WORDS = 10
_SHOWN_CHARACTERS = 40
# The words of a larger training text are not read: that would take half a minute or more, and such
# a text lacks few words.
_MAX_TOKENS = 20_000_000
# Characters that are words of their own: those of scripts without spaces (line-break classes of
# UAX #14), and symbols.
_SINGLE = r"\p{lb=SA}\p{lb=ID}\p{lb=CJ}\p{Tibetan}\p{So}\p{Sc}"
# A word: letters, marks and digits, whatever the tokenizer joins to them, or a single character.
_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_SINGLE}]]+|[{_SINGLE}]", regex.V1)


class KnownWords:
    """The distinct words of the source side of a training text.

    They are read from the tokenized text when they are first needed. If the text is too large, or
    is not on this machine, only words that the vocabulary encodes with UNK are unknown. Such words
    are unknown in any case.
    """

    def __init__(self, corpus: BinaryCorpus, language: str = "") -> None:
        """Prepare to look up words in the training text, which is read only when it is needed.

        Args:
            corpus: The corpus that the system was trained on.
            language: The language of the text to translate, for messages; by default the source
                language of the corpus.
        """
        self._corpus = corpus
        self._language = language or corpus.source
        self._segmentation = corpus.segmentation(corpus.source)
        # Calls `_unknown_words_of_token` once for each frequent token.
        self._unknown_words_by_token = BoundedCache(self._unknown_words_of_token)
        # The corpus is in the folder data/binary/CORPUS of the project.
        project_root = corpus.folder.parents[2]
        tokens_folder = paths.corpus_folder(corpus.folder.name, "tokens", project_root)
        self._train_file = tokens_folder / f"train.{corpus.source}"
        # Reading a very large text would take half a minute or more.
        is_small = corpus.sets["train"].source_tokens <= _MAX_TOKENS
        self._has_text = is_small and self._train_file.exists()

    def unknown_words(self, tokens: Iterable[str]) -> list[str]:
        """Return the words of a sentence that the training text does not contain, in text order.

        Args:
            tokens: The tokens of the sentence.
        """
        unknown_words = []
        for token in tokens:
            unknown_words += self._unknown_words_by_token[token]
        return unknown_words

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._all_words)

    def __str__(self) -> str:
        """Describe the training text: `9 pairs of toy, with 30 different source words`."""
        pairs = counted(self._corpus.sets["train"].pairs, "pair")
        corpus_name = self._corpus.folder.name
        description = f"{pairs} of {corpus_name}"
        if self._has_text:
            description += f", with {counted(len(self), 'different source word')}"
        return description

    def note(self, unknown: Counter[str], word_count: int) -> tuple[str, MessageKind]:
        """Return a message about the words of a text that the training text does not contain.

        The message names only the most frequent of these words, so that it stays short. If more
        than half of all words are unknown, the text may be in another language: the message then
        asks for it, and is a warning.

        Args:
            unknown: How often each unknown word occurs in the text.
            word_count: The number of all words in the text.

        Returns:
            The message, and its kind: "warning" if more than half of the words are unknown, else
            "note".
        """
        named_words = []
        for word, _ in unknown.most_common(_NAMED_WORDS):
            is_short = len(word) <= _SHOWN_CHARACTERS
            named_words.append(word if is_short else f"{word[:_SHOWN_CHARACTERS]}…")
        listed = ", ".join(named_words)
        unlisted_count = len(unknown) - len(named_words)
        if unlisted_count:
            listed += f" and {counted(unlisted_count, 'other')}"
        unknown_count = unknown.total()
        message = (
            f"{unknown_count:,} of {word_count:,} words were not in the training text: "
            f"{listed} ({self})"
        )
        is_half_known = 2 * unknown_count <= word_count
        if is_half_known:
            return message, "note"
        hint = f"Is it {self._language}? For other text: bleuprint new-corpus --help"
        return f"{message}. The translations are guesses. {hint}", "warning"

    @cached_property
    def _all_words(self) -> set[str]:
        """All different words of the training text, read from its tokens when first needed."""
        tokens = set[str]()
        pairs = self._corpus.sets["train"].pairs
        lines = read_lines(self._train_file)
        for line in track(lines, "read the training text", pairs, "lines"):
            tokens.update(self._corpus.words_without_tag(line))
        return set(find_words(tokens))

    def _unknown_words_of_token(self, token: str) -> list[str]:
        """Return the words in a token that the system does not know.

        Most tokens are one word, but 10:30, for example, contains two. A word is unknown if the
        training text does not contain it, or if the vocabulary cannot encode it and yields UNK, the
        token for unknown text. If the training text is not available, only the vocabulary counts.
        """
        words = find_words([token])
        has_unk = self._is_encoded_with_unk(token)
        if self._has_text:
            is_one_word = words == [token]
            if has_unk and is_one_word:
                # The model cannot read the word, even if the training text contains it.
                return words
            return [word for word in words if word not in self._all_words]
        if has_unk:
            return [word for word in words if self._is_encoded_with_unk(word)]
        # The vocabulary can encode 10:30 as a whole, even if it cannot encode 10 alone.
        return []

    def _is_encoded_with_unk(self, word: str) -> bool:
        """Return whether the vocabulary lacks a word, or a part of it."""
        return UNK in self._segmentation.encode([word])


def find_words(tokens: Iterable[str]) -> list[str]:
    """Return the words of a tokenized sentence, without its punctuation."""
    words: list[str] = _WORD.findall(" ".join(tokens))
    return words
