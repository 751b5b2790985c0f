"""Statistics of a binarized corpus: sentences, words, tokens, vocabularies.

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
from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record

_SENTENCES = 1 << 16

_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SideStatistics:
    """One side of a set, without EOS.

    `unsplit`: how many words are one token; `unk`: how many tokens are UNK; `max_tokens`: the
    tokens of the longest sentence.
    """

    sentences: int
    words: int
    unsplit: int
    tokens: int
    unk: int
    max_tokens: int


@dataclass(frozen=True)
class VocabularyStatistics:
    """A language's vocabulary: its size without special tokens, and how many of its tokens occur
    less than 10 times in the training text (of both languages, if shared).
    """

    size: int
    below_10: int


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
        """Count a corpus; raises UserError if one of its files is damaged."""
        corpus.verify()
        languages = corpus.source, corpus.target
        vocabularies = {}
        for language in languages:
            counts = corpus.segmentation(language).vocabulary.counts[len(SPECIALS) :]
            rare = sum(count < 10 for _, count in counts)
            vocabularies[language] = VocabularyStatistics(len(counts), rare)
        sets = {
            name: {language: _count_side(corpus, name, language) for language in languages}
            for name in corpus.sets
        }
        return cls(corpus.joint, sets, vocabularies)

    @classmethod
    def read(cls, path: Path) -> "CorpusStatistics":
        return read_record(cls, path)

    def write(self, path: Path) -> None:
        write_json(path, dataclasses.asdict(self))


def _count_side(corpus: BinaryCorpus, name: str, language: str) -> SideStatistics:
    sentences = corpus.side(name, language)
    ends_word = corpus.segmentation(language).ends_word
    words = unsplit = unk = 0
    for ids, stops in _blocks(sentences):
        is_eos = np.zeros(len(ids), bool)
        is_eos[stops - 1] = True
        last = ends_word(ids) & ~is_eos  # the last token of a word
        bounds = np.flatnonzero(last | is_eos)
        sizes = np.diff(bounds, prepend=-1)[last[bounds]]
        words += len(sizes)
        unsplit += int((sizes == 1).sum())
        unk += int((ids == UNK).sum())
    return SideStatistics(
        sentences=len(sentences),
        words=words,
        unsplit=unsplit,
        tokens=int(sentences.lengths.sum()) - len(sentences),
        unk=unk,
        max_tokens=int(sentences.lengths.max(initial=1)) - 1,
    )


def _blocks(sentences: Sentences) -> Iterator[tuple[_Counts, _Counts]]:
    """Blocks of sentences: the ids of all, and the index after each one's last id."""
    for start in range(0, len(sentences), _SENTENCES):
        stop = min(start + _SENTENCES, len(sentences))
        block = [sentences[i] for i in range(start, stop)]
        yield np.concatenate(block).astype(np.int64), np.cumsum([len(ids) for ids in block])
