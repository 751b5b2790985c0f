"""All alignments of two documents as paths through a lattice, searched within a band.

The cell (i, j) of the lattice means that the first i source and the first j target sentences are
aligned. A bead of the size (m, n), one of BEAD_SIZES, leads from the cell (i - m, j - n) to (i, j):
the next m source sentences are translated by the next n target sentences. An alignment is a path of
beads from (0, 0) to the last cell; its score, a log-probability, is the sum of its beads' scores.

`best_path` finds the most probable alignment, `forward_backward` the probabilities of all beads.
Both read the scores of beads from a `Scorer`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The numbers of source and of target sentences of a bead. The last size must be the one without
# source sentences: only it leads to a cell of the same row (`_search_row`).
BEAD_SIZES = ((1, 1), (1, 0), (2, 1), (1, 2), (2, 2), (0, 1))
# Beads of several rows are scored in one call: of so many rows, or of about so many cells. Fewer
# calls are faster, and more cells at once take more memory.
_ROWS_AT_ONCE = 48
_CELLS_AT_ONCE = 1 << 16


class Bead(NamedTuple):
    """Consecutive source and target sentences that translate each other.

    Attributes:
        source: The indices of the source sentences in their document.
        target: The indices of the target sentences in their document.
    """

    source: range
    target: range

    @property
    def kind(self) -> str:
        """The numbers of source and target sentences, such as `2-1`."""
        return f"{len(self.source)}-{len(self.target)}"


class Band(NamedTuple):
    """The cells of a lattice that are searched: a range of columns in each row.

    Attributes:
        starts: The first column of each row, (rows,).
        stops: The column after the last one of each row, (rows,).
    """

    starts: Ints
    stops: Ints

    @classmethod
    def around(cls, centers: Ints, columns: int, half_width: int) -> "Band":
        """Create the band of cells near a line through the table of alignments, as its diagonal.

        Only these cells are searched for the best path from the first to the last cell.

        Args:
            centers: For each row the column of this line, (rows,); it never decreases.
            columns: The number of columns of the table.
            half_width: The number of columns to the left and to the right of the line.
        """
        starts = (centers - half_width).clip(0)
        stops = (centers + half_width + 1).clip(max=columns)
        # Every path begins in the first cell and ends in the last one.
        starts[0] = 0
        stops[-1] = columns
        # Where centers are far apart, each row is extended to where the next row begins: otherwise
        # no path would lead from one to the other.
        stops[:-1] = np.maximum(stops[:-1], starts[1:] + 1)
        return cls(starts, stops)

    @property
    def reversed(self) -> "Band":
        """The same cells if both documents are in reverse order: the last cell becomes the first.

        The forward-backward algorithm also computes probabilities from the end. In a table of 10
        columns, the columns 2 to 5 of row 1 become the columns 4 to 7 of the last row but one.
        """
        columns = self.stops[-1]  # The last row contains the last column.
        return Band(
            starts=columns - self.stops[::-1],
            stops=columns - self.starts[::-1],
        )

    def cells(self, first_row: int, stop_row: int) -> tuple[Ints, Ints]:
        """List the cells of some rows.

        If row 4 has the columns 0 and 1, and row 5 the columns 1 and 2, the cells are (4, 0),
        (4, 1), (5, 1) and (5, 2).

        Args:
            first_row: The first row.
            stop_row: The row after the last one.

        Returns:
            The row of each cell, and its column, both (cells,).
        """
        starts = self.starts[first_row:stop_row]
        stops = self.stops[first_row:stop_row]
        columns_of_rows = [
            np.arange(start, stop) for start, stop in zip(starts, stops, strict=True)
        ]
        rows = np.repeat(np.arange(first_row, stop_row), stops - starts)
        return rows, np.concatenate(columns_of_rows)


class Scorer(Protocol):
    """Scores beads of two documents."""

    def __call__(self, band: Band, first_row: int, stop_row: int) -> Floats:
        """Score beads, that is, groups of source and target sentences, as mutual translations.

        The cell (i, j) is the point after i source and j target sentences. The bead of the size
        (m, n) that ends there consists of the m source and the n target sentences before it.

        Args:
            band: The cells that are searched.
            first_row: The first row of cells to score.
            stop_row: The row after the last one.

        Returns:
            Log-probabilities, (bead sizes, cells); -inf where fewer sentences exist.
        """


class Posteriors(NamedTuple):
    """What the probabilities of all alignments say about two documents.

    Attributes:
        pairs: The certain 1-1 beads, as indices of the source and of the target sentence.
        band: The cells that are not improbable.
        at_edge: The largest probability of a cell at an edge of the band that was searched. If it
            is not small, the right alignment may lie outside of the band.
    """

    pairs: list[tuple[int, int]]
    band: Band
    at_edge: float


def best_path(band: Band, scorer: Scorer) -> list[Bead]:
    """Find the best sentence alignment of two documents, by Viterbi's algorithm.

    An alignment is a path through a table, whose cell (i, j) is the point after i source and j
    target sentences. Each step of the path is a bead, that is, a few source sentences and the
    target sentences that translate them.

    Args:
        band: The cells that are searched, near the diagonal.
        scorer: Returns the log-probabilities of beads.

    Returns:
        The beads of the path with the highest sum, in order.
    """
    rows = list(_search(band, scorer, combine=np.maximum))
    beads = []
    # Follow the path back from the last cell: for each cell, `_search` stores the last bead of the
    # best path that leads to it.
    row = len(rows) - 1
    column = int(band.stops[-1]) - 1
    while row > 0 or column > 0:
        bead_size = rows[row].best_sizes[column - band.starts[row]]
        source_count, target_count = BEAD_SIZES[bead_size]
        beads.append(
            Bead(
                source=range(row - source_count, row),
                target=range(column - target_count, column),
            )
        )
        row -= source_count
        column -= target_count
    beads.reverse()
    return beads


def forward_backward(
    band: Band,
    scorer: Scorer,
    reversed_scorer: Scorer,
    min_pair_probability: float,
    min_cell_probability: float,
) -> Posteriors:
    """Compute which sentence pairs of two documents are certain, over all possible alignments.

    An alignment is a path through a table, whose cell (i, j) is the point after i source and j
    target sentences. The probability that it passes a cell is exp(forward + backward - total). All
    three are logarithms of sums of probabilities: forward sums all paths from the first cell to
    this one, backward all paths from this one to the last cell, total all paths.

    Args:
        band: The cells that are searched, near the diagonal.
        scorer: Scores a path's steps: a few source sentences with their translations.
        reversed_scorer: Scores the steps of both documents in reverse order.
        min_pair_probability: Pairs of single sentences with a greater probability are certain, such
            as 0.9.
        min_cell_probability: Cells with a greater probability are returned, such as 1e-6.

    Returns:
        The certain pairs; the cells that are not improbable; and how probable the edges of the band
        are, which shows if the band is too narrow.
    """
    # A list of rows, from the last row to the first one, since the documents are reversed.
    backward_scores = []
    for reversed_row in _search(band.reversed, reversed_scorer, combine=np.logaddexp):
        backward_scores.append(reversed_row.scores[::-1])
    total = backward_scores[-1][0]  # The first cell: all paths from there to the last cell.
    row_count = len(backward_scores)
    columns = int(band.stops[-1])
    # The first and the last probable column of each row, here as for a row without any.
    first_probable = np.full(row_count, columns)
    last_probable = np.full(row_count, -1)
    pairs = []
    at_edge = 0.0
    for row_index, row in enumerate(_search(band, scorer, combine=np.logaddexp)):
        start = int(band.starts[row_index])
        backward = backward_scores.pop()  # Frees the memory of each row after its use.
        probabilities = np.exp(row.scores + backward - total)
        probable = np.flatnonzero(probabilities > min_cell_probability)
        if len(probable):
            first_probable[row_index] = start + probable[0]
            last_probable[row_index] = start + probable[-1]
        has_left_edge = start > 0
        has_right_edge = int(band.stops[row_index]) < columns
        at_edge = max(at_edge, _edge_maximum(probabilities, has_left_edge, has_right_edge))
        # How probable it is that the last step before a cell is a pair of single sentences.
        log_probabilities = row.one_to_one_scores + backward - total
        is_certain = log_probabilities > np.log(min_pair_probability)
        for offset in np.flatnonzero(is_certain).tolist():
            column = start + offset
            # The sentences before the cell (i, j) have the indices i - 1 and j - 1.
            pairs.append((row_index - 1, column - 1))
    probable_band = _probable_band(first_probable, last_probable, columns)
    return Posteriors(pairs, probable_band, at_edge)


def _edge_maximum(probabilities: Floats, has_left_edge: bool, has_right_edge: bool) -> float:
    """Return the highest probability of a cell near the edges of a row of searched cells.

    A high one means that the right path may lie outside, so that more cells must be searched.

    Args:
        probabilities: For each searched cell of the row the probability that the right path passes
            it.
        has_left_edge: Whether the table has cells to the left of them, which are not searched.
        has_right_edge: Whether the table has cells to the right of them.
    """
    depth = max(len(probabilities) // 16, 1)  # A sixteenth of the row counts as its edge.
    maximum = 0.0
    if has_left_edge:
        maximum = max(maximum, probabilities[:depth].max())
    if has_right_edge:
        maximum = max(maximum, probabilities[-depth:].max())
    return maximum


def _probable_band(first_probable: Ints, last_probable: Ints, columns: int) -> Band:
    """Return the cells that a second, more exact search must visit: probable cells and neighbors.

    Two more columns are added on each side, because a step of a path spans up to two target
    sentences. A row without probable cells gets the columns between those of the rows before and
    after it, so that a path can lead through it.

    Args:
        first_probable: The first probable column of each row, (rows,); `columns` if there is none.
        last_probable: The last probable column of each row, (rows,); -1 if there is none.
        columns: The number of columns of the table.
    """
    # No path leads back to the left. So each row starts at the first probable column of it and all
    # later rows, and it ends at the last probable column of it and all earlier rows.
    starts = np.minimum.accumulate(first_probable[::-1])[::-1]
    stops = np.maximum(np.maximum.accumulate(last_probable) + 1, starts + 1)
    return Band((starts - 2).clip(0), (stops + 2).clip(max=columns))


@dataclass(frozen=True)
class _Row:
    """The paths that end in the cells of one row of the band.

    Attributes:
        scores: For each cell the score of its best path, or of all its paths together.
        one_to_one_scores: The same, for the paths whose last bead is 1-1.
        best_sizes: For each cell the index in BEAD_SIZES of the last bead of its best path.
    """

    scores: Floats
    one_to_one_scores: Floats
    best_sizes: npt.NDArray[np.int8]


def _search(band: Band, scorer: Scorer, combine: np.ufunc) -> Iterator[_Row]:
    """Compute the scores of all paths through the table of alignments, row by row.

    The cell (i, j) is the point after i source and j target sentences, so a path from the first
    cell to this one aligns these sentences. A step spans up to two source sentences, so the scores
    of a row are computed from the two rows before.

    Args:
        band: The cells that are searched, near the diagonal.
        scorer: Scores the steps.
        combine: How the scores of the paths to one cell are combined: np.maximum keeps the best
            path, np.logaddexp adds the probabilities of all paths.

    Yields:
        The rows, in order.
    """
    # The scores of up to two rows before the current one, in order.
    earlier_scores: list[Floats] = []
    for row_index, bead_scores in enumerate(_row_scores(band, scorer)):
        row = _search_row(row_index, band, bead_scores, earlier_scores, combine)
        earlier_scores = [*earlier_scores[-1:], row.scores]
        yield row


def _search_row(
    row_index: int,
    band: Band,
    bead_scores: Floats,
    earlier_scores: list[Floats],
    combine: np.ufunc,
) -> _Row:
    """Compute the scores of all paths to the cells of one row of the table of alignments.

    A path enters the row from an earlier row, by a bead with source sentences. It may then go on
    along the row, by beads 0-1, which are target sentences without a source. If it enters at column
    k and goes on to column j, it scores entered[k] + walked[j] - walked[k], where `walked` sums the
    beads 0-1 from the row's first cell. No loop over k and j is needed: entered - walked is
    accumulated over k, from the left, then walked[j] is added.

    Args:
        row_index: The index of the row.
        band: The cells that are searched, near the diagonal.
        bead_scores: The scores of the beads that end in the row, (bead sizes, cells).
        earlier_scores: The scores of the cells of up to two rows before, in order.
        combine: np.maximum to keep the best path to a cell; np.logaddexp to add the probabilities
            of all paths.
    """
    start = int(band.starts[row_index])
    width = int(band.stops[row_index]) - start
    sizes_with_source = BEAD_SIZES[:-1]  # The last size is 0-1.
    # For each bead size, the scores of the paths that enter each cell by a bead of this size.
    by_last_bead = np.full((len(sizes_with_source), width), -np.inf)
    for size_index, (source_count, target_count) in enumerate(sizes_with_source):
        if source_count <= row_index:
            # Such a bead begins in an earlier row, `target_count` columns to the left. Move the
            # scores of that row's cells to the columns where the beads end.
            origin_start = int(band.starts[row_index - source_count])
            origin_scores = _shifted(
                earlier_scores[-source_count],
                offset=origin_start + target_count - start,
                width=width,
            )
            by_last_bead[size_index] = origin_scores + bead_scores[size_index]
    entered = combine.reduce(by_last_bead, axis=0)
    if row_index == 0:
        entered[0] = 0.0  # All paths begin here: log-probability 0.
    walked = np.cumsum([0.0, *bead_scores[-1, 1:]])
    entered_before_walk = entered - walked
    combined = combine.accumulate(entered_before_walk)
    # The last bead is 0-1 in a cell where entering further left is better than entering there.
    is_walk_best = combined > entered_before_walk
    best_sizes = np.where(is_walk_best, len(BEAD_SIZES) - 1, by_last_bead.argmax(axis=0))
    return _Row(
        scores=walked + combined,
        one_to_one_scores=by_last_bead[0],
        best_sizes=best_sizes.astype(np.int8),
    )


def _row_scores(band: Band, scorer: Scorer) -> Iterator[Floats]:
    """Yield for each row of the table the scores of the steps, called beads, that end in it.

    Several rows are scored in one call, since numpy is slow on short arrays. All rows at once would
    not fit into memory.

    Yields:
        Log-probabilities, (bead sizes, cells of the row).
    """
    widths = band.stops - band.starts
    rows_per_call = min(_ROWS_AT_ONCE, max(1, _CELLS_AT_ONCE // int(widths.max())))
    for first_row in range(0, len(widths), rows_per_call):
        # The cells of these rows are scored as one array. This is where each row ends in it.
        row_ends = np.cumsum(widths[first_row : first_row + rows_per_call])
        scores = scorer(band, first_row, stop_row=first_row + len(row_ends))
        yield from np.split(scores, row_ends[:-1], axis=1)


def _shifted(row: Floats, offset: int, width: int) -> Floats:
    """Copy a row of scores into a new row, at another position.

    The scores 1 2 3, with the offset 1 and the width 3, become -inf 1 2.

    Args:
        row: The scores.
        offset: Where the first score goes in the new row; if negative, the first scores are cut.
        width: The length of the new row. Scores beyond it are cut; cells without a score are -inf.
    """
    shifted = np.full(width, -np.inf)
    first = max(offset, 0)
    stop = min(offset + len(row), width)
    if first < stop:
        shifted[first:stop] = row[first - offset : stop - offset]
    return shifted
