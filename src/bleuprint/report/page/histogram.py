"""The lines of two systems by BLEU, as a small histogram."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Lower ends of the bins. Lines of BLEU 100 are counted apart: they may be most lines.
_BINS = range(0, 100, 10)
_TOP = 100
# Marks of the vertical axis, at most.
_MARKS = 4


@dataclass(frozen=True)
class Histogram:
    """Bins with their lower ends and the lines of both; `perfect`: the lines of BLEU 100 of both.

    `marks` are those of the vertical axis, up to its end.
    """

    bins: Sequence[tuple[int, int, int]]
    perfect: tuple[int, int]

    @property
    def marks(self) -> list[int]:
        most = max(max(first, second) for _, first, second in self.bins)
        rough = max(1.0, most / _MARKS)
        power = 10 ** math.floor(math.log10(rough))
        step = next(int(each * power) for each in (1, 2, 5, 10) if each * power >= rough)
        return list(range(0, max(1, -(-most // step)) * step + 1, step))


def histogram(first: ArrayLike, second: ArrayLike) -> Histogram:
    """Of the BLEU of each line of two systems."""
    (low, one), (high, other) = map(_counts, (first, second))
    return Histogram(list(zip(_BINS, low, high, strict=True)), (one, other))


def _counts(bleu: ArrayLike) -> tuple[list[int], int]:
    places = np.digitize(np.asarray(bleu), [*_BINS, _TOP]) - 1
    *bins, perfect = np.bincount(places, minlength=len(_BINS) + 1).tolist()
    return bins, perfect
