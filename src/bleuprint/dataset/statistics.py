"""Statistics of a binarized corpus: sentences, words, tokens and vocabularies.

Words are counted as the model sees them. With BPE, a word ends at each token without the mark of a
continued word; with SentencePiece, before each piece that begins a word. UNK counts as a word of
BPE. Arrays are read in blocks, so that memory does not grow with the corpus.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bleuprint.dataset.binarized import BinaryCorpus, Sentences
from bleuprint.dataset.subwords.vocabulary import SPECIALS, UNK
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import read_record

# The number of sentences in a block.
_BLOCK_SENTENCES = 1 << 16
# A token that occurs less often in the training text is rare: its embedding is trained too little.
_MIN_COUNT_OF_FREQUENT_TOKEN = 10

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SideStatistics:
    """One side of a set, EOS not counted.

    Attributes:
        sentences: The number of sentences.
        words: The number of words.
        unsplit: How many words are one token.
        tokens: The number of tokens.
        unk: How many tokens are UNK.
        max_tokens: The number of tokens of the longest sentence.
    """

    sentences: int
    words: int
    unsplit: int
    tokens: int
    unk: int
    max_tokens: int


@dataclass(frozen=True)
class VocabularyStatistics:
    """The vocabulary of a language.

    Attributes:
        size: The number of tokens without special tokens.
        below_10: How many of them occur less than 10 times in the training text (of both languages,
            if they share the vocabulary).
    """

    size: int
    below_10: int


@dataclass(frozen=True)
class CorpusStatistics:
    """The content of statistics.json.

    Attributes:
        joint: Whether both languages share one vocabulary.
        sets: The statistics of each side of each set, by set and language.
        vocabularies: The statistics of the vocabularies, by language.
    """

    joint: bool
    sets: dict[str, dict[str, SideStatistics]]
    vocabularies: dict[str, VocabularyStatistics]

    @classmethod
    def from_corpus(cls, corpus: BinaryCorpus) -> "CorpusStatistics":
        """Count the sentences, words and tokens of a corpus, and the tokens of its vocabularies.

        Raises:
            UserError: A file of the corpus is damaged.
        """
        corpus.verify()
        languages = (corpus.source, corpus.target)
        vocabularies = {}
        for language in languages:
            vocabularies[language] = _count_vocabulary(corpus, language)
        sets: dict[str, dict[str, SideStatistics]] = {}
        for name in corpus.sets:
            sets[name] = {}
            for language in languages:
                sets[name][language] = _count_sentences(corpus, name, language)
        return cls(joint=corpus.joint, sets=sets, vocabularies=vocabularies)

    @classmethod
    def read(cls, path: Path) -> "CorpusStatistics":
        """Read statistics.json."""
        return read_record(cls, path)

    def write(self, path: Path) -> None:
        """Write statistics.json."""
        write_json(path, dataclasses.asdict(self))


def _count_vocabulary(corpus: BinaryCorpus, language: str) -> VocabularyStatistics:
    """Count the tokens of a language's vocabulary, and how many are rare in the training text."""
    vocabulary = corpus.segmentation(language).vocabulary
    # The vocabulary begins with the special tokens, such as EOS, which are not counted.
    counts = vocabulary.counts[len(SPECIALS) :]
    rare_tokens = sum(count < _MIN_COUNT_OF_FREQUENT_TOKEN for _, count in counts)
    return VocabularyStatistics(size=len(counts), below_10=rare_tokens)


def _count_sentences(corpus: BinaryCorpus, name: str, language: str) -> SideStatistics:
    """Count the sentences, words and tokens of a set in one language.

    Args:
        corpus: The corpus.
        name: The name of the set, such as `train`.
        language: The source or the target language.
    """
    sentences = corpus.side(name, language)
    segmentation = corpus.segmentation(language)
    words = 0
    unsplit_words = 0
    unknown_tokens = 0
    for block in _read_blocks(sentences):
        is_eos = np.zeros(len(block.ids), bool)
        is_eos[block.ends - 1] = True  # `ends` are the indices after EOS.
        is_last_of_word = segmentation.ends_word(block.ids) & ~is_eos
        # The number of tokens of each word is the distance from its last token to the end before
        # it: the last token of another word, or EOS. In `Hal@@ lo Welt EOS`, ends are at 1, 2 and
        # 3; counted from -1, which is before the first token, the distances are 2, 1 and 1.
        ends = np.flatnonzero(is_last_of_word | is_eos)
        distances = np.diff(ends, prepend=-1)
        # Leave out the distances to EOS, which is not a word.
        word_lengths = distances[is_last_of_word[ends]]
        words += len(word_lengths)
        unsplit_words += int((word_lengths == 1).sum())
        unknown_tokens += int((block.ids == UNK).sum())
    tokens_with_eos = int(sentences.lengths.sum())
    # For a set without sentences, this counts 1, for EOS; so `max_tokens` is 0.
    longest_with_eos = int(sentences.lengths.max(initial=1))
    return SideStatistics(
        sentences=len(sentences),
        words=words,
        unsplit=unsplit_words,
        tokens=tokens_with_eos - len(sentences),
        unk=unknown_tokens,
        max_tokens=longest_with_eos - 1,
    )


class _Block(NamedTuple):
    """Some sentences that follow each other.

    Attributes:
        ids: The token ids of all of them.
        ends: The index in `ids` after the last token of each sentence.
    """

    ids: _Numbers
    ends: _Numbers


def _read_blocks(sentences: Sentences) -> Iterator[_Block]:
    """Yield the token ids of all sentences in blocks, so that memory does not grow with the set."""
    lengths = sentences.lengths  # Computed at each access, so once here.
    for start in range(0, len(sentences), _BLOCK_SENTENCES):
        stop = min(start + _BLOCK_SENTENCES, len(sentences))
        block_sentences = [sentences[index] for index in range(start, stop)]
        ids = np.concatenate(block_sentences).astype(np.int64)
        yield _Block(ids=ids, ends=np.cumsum(lengths[start:stop]))
