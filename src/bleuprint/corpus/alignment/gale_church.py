"""The scores of beads by the lengths of their sentences (Gale and Church 1993).

The idea of the paper, "A Program for Aligning Sentences in Bilingual Corpora": long sentences have
long translations. The length of a translation is normally distributed around the length of its
source times a constant ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from bleuprint.corpus.alignment.lattice import BEAD_SIZES, Band, Floats, Ints

# Table 5 of the paper: how often beads of each size occur, in the order of BEAD_SIZES.
PRIORS = (0.89, 0.0099, 0.089, 0.089, 0.011, 0.0099)
# Section 3.2 of the paper: the variance of a translation's length, for each source character.
VARIANCE = 6.8
# Keeps the division by the standard deviation defined for beads of empty sentences.
_MIN_MEAN_LENGTH = 1e-9


@dataclass(frozen=True)
class LengthScorer:
    """Scores the beads of two documents by their lengths in characters; a `Scorer`.

    The score is log(prior) + log(2 (1 - Phi(|delta|))), where Phi is the normal distribution and
    delta = (l_t - l_s c) / sqrt(VARIANCE (l_s + l_t / c) / 2), for lengths l_s and l_t and the
    ratio c. The mean of both lengths follows the program in the paper; the text of the paper has
    l_s in its place, with which a bead without source sentences is impossible.

    Attributes:
        source_offsets: The number of characters before each source sentence, and of all of them.
        target_offsets: The same for the target sentences.
        ratio: c, the number of target characters for each source character.
    """

    source_offsets: Ints
    target_offsets: Ints
    ratio: float

    @classmethod
    def from_sentences(
        cls, source: Sequence[str], target: Sequence[str], ratio: float
    ) -> "LengthScorer":
        """Create the scorer of two documents.

        Args:
            source: The source sentences.
            target: The target sentences.
            ratio: How many target characters correspond to one source character.
        """
        # Sentences of 5, 3 and 4 characters have the offsets 0, 5, 8 and 12.
        source_offsets = np.cumsum([0, *map(len, source)])
        target_offsets = np.cumsum([0, *map(len, target)])
        return cls(source_offsets, target_offsets, ratio)

    @property
    def centers(self) -> Ints:
        """Where translations probably are, by lengths: the diagonal of the table of alignments.

        For each number of source sentences, this is the number of target sentences that contain the
        same share of the text: if 2 source sentences are a tenth of the source, how many target
        sentences are a tenth of the target?
        """
        source_length = max(int(self.source_offsets[-1]), 1)  # An empty text has no sentences.
        share_before = self.source_offsets / source_length
        target_length = self.target_offsets[-1]
        centers: Ints = np.searchsorted(self.target_offsets, share_before * target_length)
        return centers

    @property
    def reversed(self) -> "LengthScorer":
        """The scorer of the same documents in reverse order, the last sentence first.

        The forward-backward algorithm also computes probabilities from the end. Offsets 0, 5, 8 and
        12 become 0, 4, 7 and 12.
        """
        return LengthScorer(
            source_offsets=self.source_offsets[-1] - self.source_offsets[::-1],
            target_offsets=self.target_offsets[-1] - self.target_offsets[::-1],
            ratio=self.ratio,
        )

    def __call__(self, band: Band, first_row: int, stop_row: int) -> Floats:
        """Score groups of source and target sentences, called beads, by their lengths.

        The cell (i, j) is the point after i source and j target sentences. The bead of the size
        (m, n) that ends there consists of the m source and the n target sentences before it.

        Args:
            band: The cells of the table of alignments that are searched.
            first_row: The first row of cells to score.
            stop_row: The row after the last one.

        Returns:
            Log-probabilities by Gale and Church (1993), (bead sizes, cells); -inf where fewer
            sentences exist.
        """
        rows, columns = band.cells(first_row, stop_row)
        scores = np.empty((len(BEAD_SIZES), len(rows)))
        for size_index, (source_count, target_count) in enumerate(BEAD_SIZES):
            # Of each cell's bead: its first sentences, its lengths in characters, and its score.
            first_source = (rows - source_count).clip(0)
            first_target = (columns - target_count).clip(0)
            source_length = self.source_offsets[rows] - self.source_offsets[first_source]
            target_length = self.target_offsets[columns] - self.target_offsets[first_target]
            mean_length = (source_length + target_length / self.ratio) / 2
            deviation = np.sqrt(VARIANCE * np.maximum(mean_length, _MIN_MEAN_LENGTH))
            delta = np.abs(source_length * self.ratio - target_length) / deviation
            # The prior, times the probability of a difference of at least delta: 2 * Phi(-delta),
            # where Phi is the cumulative normal distribution. `log_ndtr` is its logarithm.
            scores[size_index] = np.log(2 * PRIORS[size_index]) + log_ndtr(-delta)
            begins_too_early = (rows < source_count) | (columns < target_count)
            scores[size_index, begins_too_early] = -np.inf
        return scores
