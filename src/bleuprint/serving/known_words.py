"""Which words of a text a system has met in its training text."""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

import regex

from bleuprint.config import paths
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import UNK
from bleuprint.runtime.memoize import BoundedCache
from bleuprint.runtime.progress import track
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import read_lines

# Unknown words that a message names, and its longest.
_NAMED, _LONGEST = 10, 40
# Tokens of a training text whose words are read, at most.
_MOST = 20_000_000
# Letters and digits, whatever the tokenizer joins to them; in scripts without spaces (UAX #14) and
# of symbols each character.
_ALONE = r"\p{lb=SA}\p{lb=ID}\p{lb=CJ}\p{Tibetan}\p{So}\p{Sc}"
_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{_ALONE}]]+|[{_ALONE}]", regex.V1)


class KnownWords:
    """The distinct words of the training text of a corpus's source side.

    They are read from the tokenized text when first asked for; of texts of more than 20 million
    tokens, which would take half a minute and lack few words, or where it is not here, only UNK is
    unknown. A word that the vocabulary has as UNK, or with one, is never known.
    """

    def __init__(self, corpus: BinaryCorpus, language: str = "") -> None:
        """`language`: that of the text; by default the source language of the corpus."""
        self._corpus, self._language = corpus, language or corpus.source
        self._segmentation = corpus.segmentation(corpus.source)
        self._unknown = BoundedCache(self._unknown_of)
        root, name = corpus.folder.parents[2], corpus.folder.name
        self._text = paths.corpus_folder(name, "tokens", root) / f"train.{corpus.source}"
        self._read = corpus.sets["train"].source_tokens <= _MOST and self._text.exists()

    def unknown_words(self, tokens: Iterable[str]) -> list[str]:
        """Those of the words of a tokenized sentence that are not known, in their order."""
        return [word for token in tokens for word in self._unknown[token]]

    def __len__(self) -> int:
        return len(self._all)

    def __str__(self) -> str:
        pairs, name = self._corpus.sets["train"].pairs, self._corpus.folder.name
        of_words = f", with {counted(len(self), 'different source word')}" if self._read else ""
        return f"{counted(pairs, 'pair')} of {name}{of_words}"

    def note(self, unknown: Counter[str], count: int) -> tuple[str, str]:
        """What to say of a text of `count` words, and its kind: a warning if most are unknown.

        Names the most frequent of the unknown ones, so that the line is short for any text.
        """
        named = [word for word, _ in unknown.most_common(_NAMED)]
        named = [word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…" for word in named]
        more = f" and {counted(len(unknown) - _NAMED, 'other')}" if len(unknown) > _NAMED else ""
        said = f"{unknown.total():,} of {count:,} words were not in the training text: "
        said += f"{', '.join(named)}{more} ({self})"
        if 2 * unknown.total() <= count:
            return said, "note"
        cure = f"is it {self._language}? For other text: bleuprint new-corpus --help"
        return f"{said}: the translations are guesses; {cure}", "warning"

    @cached_property
    def _all(self) -> set[str]:
        tokens, pairs = set[str](), self._corpus.sets["train"].pairs
        for line in track(read_lines(self._text), "read the training text", pairs, "lines"):
            tokens.update(self._corpus.source_words(line))
        return {*find_words(tokens)}

    def _unknown_of(self, token: str) -> list[str]:
        found, encode = find_words([token]), self._segmentation.encode
        # the vocabulary has whole tokens: of 10:30, the subword of a 10 that ends there may lack
        if UNK in encode([token]) and (found == [token] or not self._read):
            return [word for word in found if UNK in encode([word])]
        return [word for word in found if self._read and word not in self._all]


def find_words(tokens: Iterable[str]) -> list[str]:
    """The words of a tokenized sentence, without its punctuation."""
    found: list[str] = _WORD.findall(" ".join(tokens))
    return found
