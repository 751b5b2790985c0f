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
        """Create the words of a corpus, without reading them.

        Args:
            corpus: The corpus.
            language: The language of the text to translate, for messages; by default the source
                language of the corpus.
        """
        self._corpus = corpus
        self._language = language or corpus.source
        self._segmentation = corpus.segmentation(corpus.source)
        self._unknown_words = BoundedCache(self._unknown_words_of_token)
        project_root = corpus.folder.parents[2]  # corpus.folder is data/binary/CORPUS
        tokens_folder = paths.corpus_folder(corpus.folder.name, "tokens", project_root)
        self._train_file = tokens_folder / f"train.{corpus.source}"
        is_small = corpus.sets["train"].source_tokens <= _MAX_TOKENS
        self._has_text = is_small and self._train_file.exists()

    def unknown_words(self, tokens: Iterable[str]) -> list[str]:
        """Return the unknown words of a tokenized sentence, in their order."""
        unknown_words = []
        for token in tokens:
            unknown_words += self._unknown_words[token]
        return unknown_words

    def __len__(self) -> int:
        """Return the number of distinct words."""
        return len(self._all_words)

    def __str__(self) -> str:
        """Describe the training text: `9 pairs of toy, with 30 different source words`."""
        pairs = counted(self._corpus.sets["train"].pairs, "pair")
        description = f"{pairs} of {self._corpus.folder.name}"
        if self._has_text:
            description += f", with {counted(len(self), 'different source word')}"
        return description

    def note(self, unknown: Counter[str], word_count: int) -> tuple[str, MessageKind]:
        """Return a message about the unknown words of a text, and its kind.

        It names the most frequent unknown words, so that it is one short line for any text. It is a
        warning if more than half of the words are unknown.

        Args:
            unknown: How often each unknown word occurs in the text.
            word_count: The number of words of the text.
        """
        named_words = []
        for word, _ in unknown.most_common(_NAMED_WORDS):
            is_short = len(word) <= _SHOWN_CHARACTERS
            named_words.append(word if is_short else f"{word[:_SHOWN_CHARACTERS]}…")
        listed = ", ".join(named_words)
        unnamed = len(unknown) - len(named_words)
        if unnamed:
            listed += f" and {counted(unnamed, 'other')}"
        unknown_count = unknown.total()
        message = (
            f"{unknown_count:,} of {word_count:,} words were not in the training text: "
            f"{listed} ({self})"
        )
        if 2 * unknown_count <= word_count:
            return message, "note"
        hint = f"is it {self._language}? For other text: bleuprint new-corpus --help"
        return f"{message}: the translations are guesses; {hint}", "warning"

    @cached_property
    def _all_words(self) -> set[str]:
        """The distinct words of the training text."""
        tokens = set[str]()
        pairs = self._corpus.sets["train"].pairs
        lines = read_lines(self._train_file)
        for line in track(lines, "read the training text", pairs, "lines"):
            tokens.update(self._corpus.source_words(line))
        return set(find_words(tokens))

    def _unknown_words_of_token(self, token: str) -> list[str]:
        """Return the unknown words in a token; a tokenizer may join several words, as in 10:30.

        If the vocabulary encodes the whole token, its words are looked up in the training text
        only: the vocabulary may lack a subword for a 10 that ends a word, though it encodes 10:30.
        """
        words = find_words([token])
        has_unk = self._is_encoded_with_unk(token)
        if has_unk and (words == [token] or not self._has_text):
            return [word for word in words if self._is_encoded_with_unk(word)]
        if not self._has_text:
            return []
        return [word for word in words if word not in self._all_words]

    def _is_encoded_with_unk(self, word: str) -> bool:
        """Return whether the vocabulary lacks a word, or a part of it."""
        return UNK in self._segmentation.encode([word])


def find_words(tokens: Iterable[str]) -> list[str]:
    """Return the words of a tokenized sentence, without its punctuation."""
    words: list[str] = _WORD.findall(" ".join(tokens))
    return words
