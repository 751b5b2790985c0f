"""Statistics of a binarized corpus: sentence lengths, tokens per word, vocabulary.

Words are counted as the model sees them: a word ends at each token without BPE's continuation mark,
or before a piece with SentencePiece's mark; UNK counts as a word of BPE. Arrays are read in blocks,
so that memory does not grow with the corpus.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bleuprint.dataset.binarized import BinaryCorpus, Sentences
from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.runtime.files import read_object, write_json
from bleuprint.runtime.schema import build

# `sentence_lengths` has one bin for each length up to this many words, and one for all beyond.
MAX_SENTENCE_LENGTH = 200
# `tokens_per_word` has bins for words of one, two, three, and of more tokens.
MAX_TOKENS_PER_WORD = 4
_SENTENCES = 1 << 16

_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SideStatistics:
    """One side of a set, without EOS.

    `unk`: how many tokens are UNK; `max_tokens`: the length of the longest sentence in tokens.
    `sentence_lengths[n]` sentences have n words, `tokens_per_word[n]` words have n + 1 tokens.
    """

    words: int
    tokens: int
    unk: int
    max_tokens: int
    sentence_lengths: list[int]
    tokens_per_word: list[int]

    @property
    def sentences(self) -> int:
        return sum(self.sentence_lengths)


@dataclass(frozen=True)
class VocabularyStatistics:
    """A language's vocabulary: its size without special tokens, and how many of its tokens occur
    less than 10 and less than 100 times in the training text (of both languages, if shared).
    """

    size: int
    below_10: int
    below_100: int


@dataclass(frozen=True)
class CorpusStatistics:
    """The content of statistics.json: sets by name and language, vocabularies by language.

    `joint`: whether both languages share one vocabulary.
    """

    joint: bool
    sets: dict[str, dict[str, SideStatistics]]
    vocabularies: dict[str, VocabularyStatistics]

    @classmethod
    def from_corpus(cls, corpus: BinaryCorpus) -> "CorpusStatistics":
        languages = corpus.source, corpus.target
        vocabularies = {}
        for language in languages:
            counts = corpus.segmentation(language).vocabulary.counts[len(SPECIALS) :]
            rare = (sum(count < bound for _, count in counts) for bound in (10, 100))
            vocabularies[language] = VocabularyStatistics(len(counts), *rare)
        sets = {
            name: {language: _count_side(corpus, name, language) for language in languages}
            for name in corpus.sets
        }
        return cls(corpus.joint, sets, vocabularies)

    @classmethod
    def read(cls, path: Path) -> "CorpusStatistics":
        return build(cls, read_object(path), path)

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))


def _count_side(corpus: BinaryCorpus, name: str, language: str) -> SideStatistics:
    sentences = corpus.side(name, language)
    ends_word = corpus.segmentation(language).ends_word
    sentence_lengths = np.zeros(MAX_SENTENCE_LENGTH + 2, np.int64)
    tokens_per_word = np.zeros(MAX_TOKENS_PER_WORD, np.int64)
    unk = 0
    for ids, stops in _blocks(sentences):
        is_eos = np.zeros(len(ids), bool)
        is_eos[stops - 1] = True
        last = ends_word(ids) & ~is_eos  # the last token of a word
        bounds = np.flatnonzero(last | is_eos)
        sizes = np.diff(bounds, prepend=-1)[last[bounds]]
        words = np.add.reduceat(last, np.concatenate(([0], stops[:-1])), dtype=np.int64)
        unk += int((ids == UNK).sum())
        tokens_per_word += _histogram(sizes - 1, MAX_TOKENS_PER_WORD)
        sentence_lengths += _histogram(words, MAX_SENTENCE_LENGTH + 2)
    longest = int(np.flatnonzero(sentence_lengths).max(initial=0))
    return SideStatistics(
        words=int(tokens_per_word.sum()),
        tokens=int(sentences.lengths.sum()) - len(sentences),
        unk=unk,
        max_tokens=int(sentences.lengths.max(initial=1)) - 1,
        sentence_lengths=sentence_lengths[: longest + 1].tolist(),
        tokens_per_word=tokens_per_word.tolist(),
    )


def _histogram(values: _Counts, bins: int) -> _Counts:
    """How often each value from 0 occurs; those beyond the last bin count there."""
    return np.bincount(np.minimum(values, bins - 1), minlength=bins)


def _blocks(sentences: Sentences) -> Iterator[tuple[_Counts, _Counts]]:
    """Blocks of sentences: the ids of all, and the index after each one's last id."""
    for start in range(0, len(sentences), _SENTENCES):
        stop = min(start + _SENTENCES, len(sentences))
        block = [sentences[i] for i in range(start, stop)]
        yield np.concatenate(block).astype(np.int64), np.cumsum([len(ids) for ids in block])
