"""The scores of beads by the lengths of their sentences (Gale and Church 1993)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from bleuprint.corpus.alignment.lattice import BEAD_SIZES, Band, Floats, Ints

# "A Program for Aligning Sentences in Bilingual Corpora", tables 5 and section 3.2, in the order
# of BEAD_SIZES: how often each kind of bead occurs, and the variance of a translation's length
# a character.
PRIORS = (0.89, 0.0099, 0.089, 0.089, 0.011, 0.0099)
VARIANCE = 6.8


@dataclass(frozen=True)
class LengthScorer:
    """log(prior) + log(2 (1 - Phi(|delta|))) for the beads of two documents; a `Scorer`.

    delta = (l_s c - l_t) / sqrt(VARIANCE (l_s + l_t / c) / 2), as in the paper's program: its text
    has l_s for the mean, with which a bead 0-1 is impossible. `source` and `target`: characters
    before each sentence, and in all; `ratio`, c: target characters a source character.
    """

    source: Ints
    target: Ints
    ratio: float

    @classmethod
    def from_sentences(
        cls, source: Sequence[str], target: Sequence[str], ratio: float
    ) -> "LengthScorer":
        """For two documents, as their sentences."""
        before, translated = (np.cumsum([0, *map(len, side)]) for side in (source, target))
        return cls(before, translated, ratio)

    @property
    def centers(self) -> Ints:
        """For each row of the lattice the column with the same share of characters before it."""
        share = self.source / max(int(self.source[-1]), 1)
        centers: Ints = np.searchsorted(self.target, share * self.target[-1])
        return centers

    @property
    def reversed(self) -> "LengthScorer":
        """For the documents read from their ends."""
        source, target = (before[-1] - before[::-1] for before in (self.source, self.target))
        return LengthScorer(source, target, self.ratio)

    def __call__(self, band: Band, first: int, last: int) -> Floats:
        rows, columns = band.cells(first, last)
        scores = np.empty((len(BEAD_SIZES), len(rows)))
        for kind, (di, dj) in enumerate(BEAD_SIZES):
            source = self.source[rows] - self.source[(rows - di).clip(0)]
            target = self.target[columns] - self.target[(columns - dj).clip(0)]
            mean = (source + target / self.ratio) / 2
            spread = np.sqrt(VARIANCE * np.maximum(mean, 1e-9))
            delta = np.abs(source * self.ratio - target) / spread
            scores[kind] = np.log(2 * PRIORS[kind]) + log_ndtr(-delta)
            scores[kind, (rows < di) | (columns < dj)] = -np.inf
        return scores
