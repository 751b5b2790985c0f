"""All alignments of two documents as paths through a lattice, searched within a band.

The cell (i, j) stands for the first i source and the first j target sentences. A bead, one of
KINDS, leads from the cell (i - di, j - dj) to (i, j): the next di source sentences are translated
by the next dj target sentences. An alignment is a path from (0, 0) to the last cell; its score is
the sum of those of its beads, natural logarithms of weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The number of source and of target sentences of a bead. The last one stays in its row.
KINDS = ((1, 1), (1, 0), (2, 1), (1, 2), (2, 2), (0, 1))
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


@dataclass(frozen=True)
class Band:
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

    @cached_property
    def starts(self) -> Ints:
        """The place of each row in an array of all cells, row by row, and their number."""
        return np.concatenate(([0], np.cumsum(self.hi - self.lo)))

    def cells(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Row and column of each cell of the rows from `first` up to before `last`."""
        widths = (self.hi - self.lo)[first:last]
        rows = np.repeat(np.arange(first, last), widths)
        starts = self.starts[first:last] - self.starts[first]
        return rows, np.arange(widths.sum()) + np.repeat(self.lo[first:last] - starts, widths)

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of rows whose beads are scored at once, which bounds temporary arrays."""
        rows = len(self.lo)
        step = min(_ROWS, max(1, _CELLS // int((self.hi - self.lo).max())))
        return [(first, min(first + step, rows)) for first in range(0, rows, step)]


class Scorer(Protocol):
    def __call__(self, band: Band, first: int, last: int) -> Floats:
        """The scores, (KINDS, cells), of the beads that end in cells of a range of rows.

        -inf where a bead would begin before the first sentence.
        """


@dataclass(frozen=True)
class Posteriors:
    """The probabilities of cells and beads, if paths are drawn by their weights.

    `pairs`: the certain 1-1 beads, (number, 2), sentences of source and target; `band`: the cells
    that are not improbable; `at_edge`: the largest probability at an edge of the band searched.
    """

    pairs: Ints
    band: Band
    at_edge: float


def best_path(band: Band, score: Scorer) -> list[Bead]:
    """The path of the highest score within a band; Viterbi's algorithm."""
    rows: list[Floats] = []
    kinds: list[npt.NDArray[np.intp]] = []
    for i, scores in _rows(band, score):
        ways = _ways(band, rows, i, scores)
        entered = ways.max(axis=0)
        if i == 0:
            entered[0] = 0.0
        along = _along(scores)
        level = entered - along
        best = np.maximum.accumulate(level)
        rows.append(along + best)
        kinds.append(np.where(best > level, len(KINDS) - 1, ways.argmax(axis=0)))
    beads, i, j = [], len(band.lo) - 1, int(band.hi[-1]) - 1
    while i or j:
        di, dj = KINDS[kinds[i][j - band.lo[i]]]
        beads.append(Bead(range(i - di, i), range(j - dj, j)))
        i, j = i - di, j - dj
    return beads[::-1]


def posteriors(band: Band, score: Scorer, certain: float, improbable: float) -> Posteriors:
    """The forward-backward algorithm.

    1-1 beads of a probability above `certain` and cells of one above `improbable` are returned.
    """
    forward: list[Floats] = []
    for i, scores in _rows(band, score):
        entered = np.logaddexp.reduce(_ways(band, forward, i, scores), axis=0)
        if i == 0:
            entered[0] = 0.0
        along = _along(scores)
        forward.append(along + np.logaddexp.accumulate(entered - along))
    return _backward(band, score, forward, certain, improbable)


def _backward(
    band: Band, score: Scorer, forward: list[Floats], certain: float, improbable: float
) -> Posteriors:
    count, total = len(forward), forward[-1][-1]
    # of each row: its first and last cell that is not improbable
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    pairs, at_edge = [], 0.0
    later: list[tuple[int, Floats]] = []  # the two rows below, scores with what follows each bead
    for i, scores in _rows(band, score, backward=True):
        lo, hi = int(band.lo[i]), int(band.hi[i])
        ways = [
            _columns(below[kind], int(band.lo[row]), lo + dj, hi + dj)
            for row, below in later
            for kind, (di, dj) in enumerate(KINDS[:-1])
            if row == i + di
        ]
        left = np.logaddexp.reduce(ways, axis=0) if ways else np.full(hi - lo, -np.inf)
        if i == count - 1:
            left[-1] = 0.0
        along = _along(scores)
        backward = np.logaddexp.accumulate((left + along)[::-1])[::-1] - along
        cells = np.exp(forward[i] + backward - total)
        probable = np.flatnonzero(cells > improbable)
        if len(probable):
            first[i], last[i] = lo + probable[0], lo + probable[-1]
        at_edge = max(at_edge, _at_edge(cells, lo, hi, int(band.hi[-1])))
        later = [(i, scores + backward), *later[:1]]
        if i:
            before = _columns(forward[i - 1], int(band.lo[i - 1]), lo - 1, hi - 1)
            found = np.flatnonzero(before + later[0][1][0] - total > np.log(certain))
            pairs += [(i - 1, lo + int(column) - 1) for column in found]
    return Posteriors(
        np.array(pairs[::-1], np.int64).reshape(-1, 2),
        _joined(first, last, int(band.hi[-1])),
        at_edge,
    )


def _rows(band: Band, score: Scorer, backward: bool = False) -> Iterator[tuple[int, Floats]]:
    """The scores of the beads that end in each row, row by row."""
    step = -1 if backward else 1
    for first, last in band.blocks()[::step]:
        scores = score(band, first, last)
        starts = band.starts[first : last + 1] - band.starts[first]
        for i in range(first, last)[::step]:
            yield i, scores[:, starts[i - first] : starts[i - first + 1]]


def _ways(band: Band, rows: list[Floats], i: int, scores: Floats) -> Floats:
    """The scores of the paths to the cells of row i by each kind of bead from earlier rows."""
    lo, hi = int(band.lo[i]), int(band.hi[i])
    ways = np.full((len(KINDS) - 1, hi - lo), -np.inf)
    for kind, (di, dj) in enumerate(KINDS[:-1]):
        if di <= i:
            before = _columns(rows[i - di], int(band.lo[i - di]), lo - dj, hi - dj)
            ways[kind] = before + scores[kind]
    return ways


def _columns(row: Floats, lo: int, start: int, stop: int) -> Floats:
    """The cells from column `start` up to before `stop` of a row that begins at `lo`."""
    if start >= lo and stop <= lo + len(row):
        return row[start - lo : stop - lo]
    cells = np.full(stop - start, -np.inf)
    inner = max(start, lo), min(stop, lo + len(row))
    if inner[0] < inner[1]:
        cells[inner[0] - start : inner[1] - start] = row[inner[0] - lo : inner[1] - lo]
    return cells


def _along(scores: Floats) -> Floats:
    """The score of the beads from a row's first cell to each of its cells, all within the row."""
    along = scores[-1].copy()
    along[0] = 0.0
    return np.cumsum(along)


def _at_edge(cells: Floats, lo: int, hi: int, columns: int) -> float:
    """The largest probability in a sixteenth of a row, at edges that are not the lattice's."""
    depth = max(len(cells) // 16, 1)
    left = cells[:depth].max() if lo > 0 else 0.0
    return float(max(left, cells[-depth:].max() if hi < columns else 0.0))


def _joined(first: Ints, last: Ints, columns: int) -> Band:
    """The band of the cells between `first` and `last` of each row and two columns around them.

    Rows without cells (-1) lie between the rows before and after.
    """
    lo = np.minimum.accumulate(first[::-1])[::-1]
    hi = np.maximum.accumulate(last) + 1
    lo, hi = (lo - 2).clip(0), (np.maximum(hi, lo + 1) + 2).clip(max=columns)
    return Band(lo, hi)
