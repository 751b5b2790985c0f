"""All alignments of two documents as paths through a lattice, searched within a band.

The cell (i, j) stands for the first i source and the first j target sentences. A bead, one of
BEAD_SIZES, leads from the cell (i - di, j - dj) to (i, j): the next di source sentences are
translated by the next dj target sentences. An alignment is a path from (0, 0) to the last cell; its
score is the sum of those of its beads, natural logarithms of weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The number of source and of target sentences of a bead. The last one stays in its row.
BEAD_SIZES = ((1, 1), (1, 0), (2, 1), (1, 2), (2, 2), (0, 1))
# Rows of the lattice, and about how many cells, whose beads are scored at once.
_ROWS, _CELLS = 48, 1 << 16


class Bead(NamedTuple):
    """Consecutive source and target sentences that translate each other, as ranges."""

    source: range
    target: range

    @property
    def kind(self) -> str:
        """Such as `2-1`: two source sentences, one target sentence."""
        return f"{len(self.source)}-{len(self.target)}"


class Band(NamedTuple):
    """The cells of a lattice that are searched: in row i the columns lo[i] to hi[i] - 1."""

    lo: Ints
    hi: Ints

    @classmethod
    def around(cls, centers: Ints, columns: int, half: int) -> "Band":
        """In each row `half` columns on each side of its center, and what links it to the next."""
        lo, hi = (centers - half).clip(0), (centers + half + 1).clip(max=columns)
        lo[0], hi[-1] = 0, columns
        hi[:-1] = np.maximum(hi[:-1], lo[1:] + 1)
        return cls(lo, hi)

    @property
    def reversed(self) -> "Band":
        """The band of the documents read from their ends."""
        return Band(self.hi[-1] - self.hi[::-1], self.hi[-1] - self.lo[::-1])

    def cells(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Row and column of each cell of the rows from `first` up to before `last`."""
        columns = [*map(np.arange, self.lo[first:last], self.hi[first:last])]
        return np.repeat(np.arange(first, last), [*map(len, columns)]), np.concatenate(columns)


class Scorer(Protocol):
    def __call__(self, band: Band, first: int, last: int) -> Floats:
        """The scores, (BEAD_SIZES, cells), of the beads that end in cells of a range of rows.

        -inf where a bead would begin before the first sentence.
        """


class Posteriors(NamedTuple):
    """The probabilities of cells and beads, if paths are drawn by their weights.

    `pairs`: the certain 1-1 beads, sentences of source and target; `band`: the cells that are not
    improbable; `at_edge`: the largest probability at an edge of the band searched.
    """

    pairs: list[tuple[int, int]]
    band: Band
    at_edge: float


def best_path(band: Band, score: Scorer) -> list[Bead]:
    """The path of the highest score within a band; Viterbi's algorithm."""
    kinds = [row.kinds for row in _rows(band, score, np.maximum)]
    beads, i, j = [], len(kinds) - 1, int(band.hi[-1]) - 1
    while i or j:
        di, dj = BEAD_SIZES[kinds[i][j - band.lo[i]]]
        beads.append(Bead(range(i - di, i), range(j - dj, j)))
        i, j = i - di, j - dj
    return beads[::-1]


def forward_backward(
    band: Band, score: Scorer, backward: Scorer, certain: float, improbable: float
) -> Posteriors:
    """The forward-backward algorithm; `backward` scores the documents read from their ends.

    1-1 beads of a probability above `certain` and cells of one above `improbable` are returned.
    """
    ends = [row.scores[::-1] for row in _rows(band.reversed, backward, np.logaddexp)]
    count, columns, total = len(ends), int(band.hi[-1]), ends[-1][0]
    # of each row: its first and last cell that is not improbable
    first, last = np.full(count, columns), np.full(count, -1)
    pairs, at_edge = [], 0.0
    for i, row in enumerate(_rows(band, score, np.logaddexp)):
        lo, hi, after = int(band.lo[i]), int(band.hi[i]), ends.pop()
        cells = np.exp(row.scores + after - total)
        if len(probable := np.flatnonzero(cells > improbable)):
            first[i], last[i] = lo + probable[0], lo + probable[-1]
        # a sixteenth of a row at each edge that is not the lattice's
        depth = max(len(cells) // 16, 1)
        at_edge = max(at_edge, cells[:depth].max() if lo else 0)
        at_edge = max(at_edge, cells[-depth:].max() if hi < columns else 0)
        found = np.flatnonzero(row.by_pair + after - total > np.log(certain))
        pairs += [(i - 1, lo + column - 1) for column in found.tolist()]
    # and two columns around them; rows without cells lie between the rows before and after
    start = np.minimum.accumulate(first[::-1])[::-1]
    stop = np.maximum(np.maximum.accumulate(last) + 1, start + 1)
    return Posteriors(pairs, Band((start - 2).clip(0), (stop + 2).clip(max=columns)), at_edge)


@dataclass(frozen=True)
class _Row:
    """The paths to the cells of a row.

    `scores`: of the best one or of all of them; `by_pair`: of those that end in a 1-1 bead;
    `kinds`: the best last bead.
    """

    scores: Floats
    by_pair: Floats
    kinds: npt.NDArray[np.int8]


def _rows(band: Band, score: Scorer, add: np.ufunc) -> Iterator[_Row]:
    """The rows in order; `add` is np.maximum for the best path, np.logaddexp for all paths."""
    before: list[Floats] = []
    for i, scores in enumerate(_scores(band, score)):
        lo, hi = int(band.lo[i]), int(band.hi[i])
        ways = np.full((len(BEAD_SIZES) - 1, hi - lo), -np.inf)
        for kind, (di, dj) in enumerate(BEAD_SIZES[:-1]):
            if di <= i:
                row, start = before[-di], int(band.lo[i - di]) + dj - lo
                ways[kind] = _moved(row, start, hi - lo) + scores[kind]
        entered = add.reduce(ways, axis=0)
        if i == 0:
            entered[0] = 0.0
        # the score of the beads from the row's first cell to each of its cells, within the row
        along = np.cumsum([0.0, *scores[-1, 1:]])
        level = entered - along
        best = add.accumulate(level)
        kinds = np.where(best > level, len(BEAD_SIZES) - 1, ways.argmax(axis=0)).astype(np.int8)
        before = [*before[-1:], along + best]
        yield _Row(before[-1], ways[0], kinds)


def _scores(band: Band, score: Scorer) -> Iterator[Floats]:
    """The scores of the beads that end in each row; many rows at once, but not all of them."""
    widths = band.hi - band.lo
    step = min(_ROWS, max(1, _CELLS // int(widths.max())))
    for first in range(0, len(widths), step):
        ends = np.cumsum(widths[first : first + step])
        scores = score(band, first, first + len(ends))
        yield from np.split(scores, ends[:-1], axis=1)


def _moved(row: Floats, start: int, width: int) -> Floats:
    """A row of a width whose cells from `start` on are those of another; -inf elsewhere."""
    cells = np.full(width, -np.inf)
    stop = min(start + len(row), width)
    if max(start, 0) < stop:
        cells[max(start, 0) : stop] = row[max(-start, 0) : stop - start]
    return cells
