"""The scores of beads by lengths and words: IBM Model 1 in both directions, as in Moore (2002)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from scipy.sparse import csr_array

from bleuprint.corpus.alignment.gale_church import PRIORS, LengthScorer
from bleuprint.corpus.alignment.lattice import BEAD_SIZES, Band, Floats
from bleuprint.corpus.alignment.word_translation import (
    Integers,
    WordRatios,
    WordTranslations,
    likelihood_ratios,
)

# In scripts without spaces between words each character is a word, and so is a mark or symbol.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = regex.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[\w\p{{M}}])+|\S")
# The largest number of sentences of one side of a bead.
_MAX_SENTENCES = 2


def split_words(sentence: str) -> list[str]:
    """Split a sentence of any language into words and marks, without a tokenizer."""
    words: list[str] = _WORD.findall(sentence)
    return words


@dataclass(frozen=True)
class WordScorer:
    """Scores the beads of two documents by their lengths and words; a `Scorer`.

    A bead with both sides scores its length score plus the mean over both directions of
    log(p(words | other side) / p(words)). A bead with one side scores log(prior), since its words
    are as likely as by chance. This is Moore's likelihood divided by the likelihood of all words by
    chance, which is the same for all paths.

    Attributes:
        lengths: Scores the same documents by lengths.
        source: The word ids of each source sentence.
        target: The word ids of each target sentence.
        translations: The word translations.
    """

    lengths: LengthScorer
    source: Sequence[Integers]
    target: Sequence[Integers]
    translations: WordTranslations

    def __call__(self, band: Band, first_row: int, stop_row: int) -> Floats:
        """Score groups of source and target sentences, called beads, by their lengths and words.

        The cell (i, j) is the point after i source and j target sentences. The bead of the size
        (m, n) that ends there consists of the m source and the n target sentences before it.

        Args:
            band: The cells of the table of alignments that are searched.
            first_row: The first row of cells to score.
            stop_row: The row after the last one.

        Returns:
            Log-probabilities, up to a constant, (bead sizes, cells); -inf where fewer sentences
            exist.
        """
        scores = self.lengths(band, first_row, stop_row)
        for size_index, (source_count, target_count) in enumerate(BEAD_SIZES):
            if source_count == 0 or target_count == 0:
                # A sentence without a translation: neither its length nor its words can be compared
                # with anything. Its score is the prior alone: how often such sentences occur.
                is_possible = scores[size_index] > -np.inf
                scores[size_index, is_possible] = np.log(PRIORS[size_index])
        return scores + self._word_scores(band, first_row, stop_row)

    def _word_scores(self, band: Band, first_row: int, stop_row: int) -> Floats:
        """Score groups of source and target sentences, called beads, by how well words translate.

        A bead's score is the mean of both directions: how much likelier the target words are given
        the source words than by chance, and the reverse (log-likelihood ratios). Each bead ends in
        a cell: the cell (i, j) is the point after i source and j target sentences.

        Args:
            band: The cells of the table of alignments that are searched.
            first_row: The first row of cells to score.
            stop_row: The row after the last one.

        Returns:
            The scores, (bead sizes, cells). Where a bead would begin before the first sentence, the
            number is meaningless; such a bead is excluded by its length score, -inf.
        """
        rows, columns = band.cells(first_row, stop_row)
        scores = np.zeros((len(BEAD_SIZES), len(rows)))
        # The sentences of all beads that end in these rows: sentence i - 1 is the last one before
        # row i, and a bead contains up to _MAX_SENTENCES of each side.
        first_source = max(first_row - _MAX_SENTENCES, 0)
        first_target = max(int(band.starts[first_row]) - _MAX_SENTENCES, 0)
        source = self.source[first_source : stop_row - 1]
        target = self.target[first_target : int(band.stops[stop_row - 1]) - 1]
        if len(source) == 0 or len(target) == 0:
            return scores
        forward, backward = self._sentence_gains(source, target)
        # For each cell, the indices of its beads' last sentences in `source` and `target`. Beads
        # that begin too early have negative indices; below, the modulo makes them valid indices.
        last_source = rows - first_source - 1
        last_target = columns - first_target - 1
        for size_index, (source_count, target_count) in enumerate(BEAD_SIZES):
            if source_count == 0 or target_count == 0:
                continue
            # Each target sentence of the bead, given its one or two source sentences.
            for distance in range(target_count):
                gains = forward[source_count - 1]
                target_index = (last_target - distance) % len(target)
                scores[size_index] += gains[last_source % len(source), target_index] / 2
            # Each source sentence of the bead, given its one or two target sentences.
            for distance in range(source_count):
                gains = backward[target_count - 1]
                source_index = (last_source - distance) % len(source)
                scores[size_index] += gains[last_target % len(target), source_index] / 2
        return scores

    def _sentence_gains(
        self, source: Sequence[Integers], target: Sequence[Integers]
    ) -> tuple[list[Floats], list[Floats]]:
        """Compute how well source sentences explain the words of target sentences, and the reverse.

        The large sparse tables of word translations are first reduced to the words of these
        sentences, since products of small dense tables are fast.

        Args:
            source: The word ids of some source sentences.
            target: The word ids of some target sentences.

        Returns:
            The gains (sums of log-likelihood ratios, explained in `_gains`) of target sentences
            given source sentences, and of source sentences given target sentences.
        """
        source_words = np.unique(np.concatenate(source))
        target_words = np.unique(np.concatenate(target))
        # Selects the rows of these source words and the columns of these target words.
        these_words = np.ix_(source_words, target_words)
        forward = self.translations.forward
        backward = self.translations.backward
        forward_gains = _gains(forward, forward.linked[these_words].toarray(), source, target)
        backward_ratios = backward.linked[these_words].toarray().T
        backward_gains = _gains(backward, backward_ratios, target, source)
        return forward_gains, backward_gains


def _gains(
    word_ratios: WordRatios,
    linked_ratios: Floats,
    conditions: Sequence[Integers],
    sentences: Sequence[Integers],
) -> list[Floats]:
    """Compute how well sentences of one language explain the words of sentences of the other.

    By IBM Model 1, a sentence gains the sum of log(p(word | condition) / p(word)) over its words.
    The condition is a sentence of the other language, or two consecutive ones. p(word | condition)
    is a mean of p(word | other word): over the words of the condition, and NULL, the empty word.

    Args:
        word_ratios: p(word | other word) / p(word), stored in parts: a table of word pairs, NULL,
            and a prior, which makes rare words weak evidence.
        linked_ratios: The part of the table with the words that occur in these sentences, in the
            order of their ids, (words of conditions, words of sentences).
        conditions: The word ids of the sentences that explain.
        sentences: The word ids of the sentences whose words are explained.

    Returns:
        Two arrays (conditions, sentences): the gains given each condition alone, and given each
        condition together with the one before it. The first condition has none before it; its
        numbers in the second array are never read.
    """
    condition_words, condition_counts = _count_words(conditions)
    sentence_words, sentence_counts = _count_words(sentences)
    lengths = np.array([len(condition) for condition in conditions], float)
    null_ratios = word_ratios.null[sentence_words]
    prior_sums = condition_counts @ word_ratios.prior_share[condition_words]
    # For each condition and word the sum of ratios over the words of the condition.
    ratio_sums = condition_counts @ linked_ratios + prior_sums[:, None]
    gains = []
    # Two rounds: each condition alone, then each condition joined with the one before it.
    for _ in range(_MAX_SENTENCES):
        ratios = likelihood_ratios(ratio_sums + null_ratios, lengths[:, None])
        # Add up the logarithms over the words of each sentence.
        gains.append((sentence_counts @ np.log(ratios).T).T)
        # Join the conditions. `roll` moves the values of each condition to the next one.
        ratio_sums = ratio_sums + np.roll(ratio_sums, 1, axis=0)
        lengths = lengths + np.roll(lengths, 1)
    return gains


def _count_words(sentences: Sequence[Integers]) -> tuple[Integers, csr_array]:
    """Count how often each sentence contains each word.

    For the word ids 5 7 5 and 9 of two sentences, the words are 5, 7 and 9, and the counts are
    2 1 0 and 0 0 1.

    Args:
        sentences: The word ids of each sentence.

    Returns:
        The different word ids, ascending; and how often each sentence contains each of them, as a
        sparse matrix (sentences, different words).
    """
    words, columns = np.unique(np.concatenate(sentences), return_inverse=True)
    sentence_starts = np.cumsum([0, *map(len, sentences)])
    # Each occurrence of a word is an entry 1 of the matrix. Products with the matrix add up several
    # entries in one place.
    ones = np.ones(len(columns))
    shape = (len(sentences), len(words))
    return words, csr_array((ones, columns, sentence_starts), shape)
