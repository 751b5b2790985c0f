"""Writes a made-up English-German text of any size, with faults at stated rates.

A sentence pair has the lengths in words of a random pair of Multi30k. Its words are drawn one by
one: by their frequency in Multi30k or, with probability RARE_WORDS, made-up words of syllables with
Zipf's frequencies, since a large text has many rare words. The text has no meaning, but it has what
the cost of a stage depends on: bytes, words, different words, letters of a language, and pairs that
rules drop. FAULTS names the faults and the probability of each; a pair has at most one.

Multi30k is read from BLEUPRINT_MIRROR. Equal arguments give equal bytes.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bleuprint.text.parallel import PairWriter
from limits import random_words
from prepare import multi30k

SOURCE = "en"
TARGET = "de"
# The language of sources in the wrong language.
WRONG = "fr"

# The probability that a word is a made-up one, and the number of different ones of a language.
RARE_WORDS = 0.1
DIFFERENT_RARE_WORDS = 1_000_000
DIFFERENT_RARE_WORDS_OF_WRONG = 10_000
# Faults, and the share of pairs that have them.
FAULTS = {
    "duplicate": 0.10,  # an earlier pair of the same chunk
    "wrong language": 0.03,  # a French source
    "untranslated": 0.01,  # source and target are equal
    "shifted": 0.02,  # the target of another pair
    "long": 0.005,  # both sides have 300 words
}
LONG_SENTENCE_WORDS = 300
# Pairs that are drawn at once.
CHUNK_PAIRS = 100_000

Words = NDArray[np.object_]


class Language:
    """The words of a language, from which sentences are drawn."""

    def __init__(self, code: str, different_rare_words: int, seed: int) -> None:
        """Read the words of a language from Multi30k, and make up rare ones.

        Args:
            code: The language, such as `de`.
            different_rare_words: The number of different rare words.
            seed: The seed of the rare words.
        """
        counts: Counter[str] = Counter()
        lengths = []
        for line in multi30k(code):
            words = line.rstrip(".").split()
            counts.update(words)
            lengths.append(len(words))
        # The number of words of each sentence of Multi30k.
        self.lengths = np.array(lengths)
        rare_counts = random_words(different_rare_words, seed)
        self._words: Words = np.array([*counts, *rare_counts], dtype=object)
        common = np.array(list(counts.values())) / counts.total()
        rare = np.array(list(rare_counts.values())) / sum(rare_counts.values())
        probabilities = np.concatenate([(1 - RARE_WORDS) * common, RARE_WORDS * rare])
        self._cumulative = probabilities.cumsum()

    def sentences(self, lengths: NDArray[np.int64], random: np.random.Generator) -> list[str]:
        """Draw sentences.

        Args:
            lengths: The number of words of each sentence.
            random: The source of random numbers.
        """
        total_words = int(lengths.sum())
        indices = self._cumulative.searchsorted(random.random(total_words))
        # The last cumulative probability may be a little below 1.
        words = self._words[indices.clip(max=len(self._words) - 1)].tolist()
        ends = lengths.cumsum()
        sentences = []
        for start, end in zip(ends - lengths, ends, strict=True):
            sentences.append(" ".join(words[start:end]) + ".")
        return sentences


class MadeUpText:
    """A text without end, in chunks."""

    def __init__(self, seed: int) -> None:
        """Prepare the words of all languages.

        Args:
            seed: The seed; another one gives another text.
        """
        self._random = np.random.default_rng(seed)
        self._source = Language(SOURCE, DIFFERENT_RARE_WORDS, seed=1)
        self._target = Language(TARGET, DIFFERENT_RARE_WORDS, seed=2)
        self._wrong = Language(WRONG, DIFFERENT_RARE_WORDS_OF_WRONG, seed=3)

    def write(self, folder: Path, name: str, pairs: int, *, has_faults: bool) -> None:
        """Write a set of the text: the files NAME.en and NAME.de.

        Args:
            folder: The folder of the files.
            name: The name of the set, such as `train`.
            pairs: The number of sentence pairs.
            has_faults: Whether some pairs have faults.
        """
        written = 0
        with PairWriter(folder / f"{name}.{SOURCE}", folder / f"{name}.{TARGET}") as writer:
            for sources, targets in self._chunks(pairs, has_faults):
                source_text = "".join(f"{sentence}\n" for sentence in sources)
                target_text = "".join(f"{sentence}\n" for sentence in targets)
                writer.write_lines(source_text.encode(), target_text.encode())
                written += len(sources)
        assert written == pairs

    def _chunks(self, pairs: int, has_faults: bool) -> Iterator[tuple[list[str], list[str]]]:
        """Yield source and target sentences in chunks.

        Args:
            pairs: The number of sentence pairs of all chunks together.
            has_faults: Whether some pairs have faults.
        """
        for start in range(0, pairs, CHUNK_PAIRS):
            count = min(CHUNK_PAIRS, pairs - start)
            rows = self._random.integers(len(self._source.lengths), size=count)
            fault_numbers = np.full(count, len(FAULTS))
            if has_faults:
                limits = np.cumsum(list(FAULTS.values()))
                fault_numbers = limits.searchsorted(self._random.random(count), side="right")
            yield self._chunk(rows, fault_numbers)

    def _chunk(
        self, rows: NDArray[np.int64], fault_numbers: NDArray[np.int64]
    ) -> tuple[list[str], list[str]]:
        """Draw the sentences of a chunk, and give some of them faults.

        Args:
            rows: The pairs of Multi30k that have the lengths of these pairs.
            fault_numbers: The number of each pair's fault in FAULTS; any larger number for none.

        Returns:
            The source sentences and the target sentences.
        """
        names = list(FAULTS)
        is_long = fault_numbers == names.index("long")
        source_lengths = np.where(is_long, LONG_SENTENCE_WORDS, self._source.lengths[rows])
        target_lengths = np.where(is_long, LONG_SENTENCE_WORDS, self._target.lengths[rows])
        sources = self._source.sentences(source_lengths, self._random)
        targets = self._target.sentences(target_lengths, self._random)
        is_wrong = fault_numbers == names.index("wrong language")
        wrong_sources = self._wrong.sentences(source_lengths[is_wrong], self._random)
        for index, sentence in zip(np.flatnonzero(is_wrong).tolist(), wrong_sources, strict=True):
            sources[index] = sentence
        for index in np.flatnonzero(fault_numbers == names.index("untranslated")).tolist():
            targets[index] = sources[index]
        for index in np.flatnonzero(fault_numbers == names.index("shifted")).tolist():
            targets[index] = targets[index - 1]
        is_duplicate = fault_numbers == names.index("duplicate")
        for index in np.flatnonzero(is_duplicate).tolist():
            original = int(self._random.integers(len(rows)))
            sources[index] = sources[original]
            targets[index] = targets[original]
        return sources, targets
