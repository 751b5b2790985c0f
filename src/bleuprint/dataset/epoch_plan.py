"""The batches of one epoch, as arrays that several processes can share.

A plan takes 4 bytes a sentence pair and 16 bytes a batch: the rows of all batches one after the
other, where each batch ends, and how many target tokens it has. Written to a file, any number of
processes can map it into memory, which then exists once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleuprint.runtime.file_errors import DamagedFile

# Rows are 32-bit integers, unless the training set has more pairs than these can number.
_SMALL_ROW_TYPE = np.dtype("<i4")
_LARGE_ROW_TYPE = np.dtype("<i8")
# A file contains the numbers of batches and pairs, `ends`, `tokens`, and then `rows`. All but the
# rows are 64-bit integers.
_NUMBER_TYPE = np.dtype("<i8")

Rows = NDArray[np.signedinteger[Any]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EpochPlan:
    """The batches of one epoch, in the order in which they are trained on.

    A plan behaves like a sequence of batches: `plan[0]` is the rows of the first batch.

    Attributes:
        rows: The indices of the sentence pairs of all batches in the training set, (pairs,).
        ends: For each batch the index in `rows` after its last pair, (batches,).
        tokens: The number of target tokens of each batch, (batches,).
    """

    rows: Rows
    ends: Numbers
    tokens: Numbers

    @classmethod
    def of_batches(cls, rows: Rows, ends: Numbers, target_lengths: Rows) -> "EpochPlan":
        """Return the plan with these batches; their target tokens are counted.

        Args:
            rows: The rows of all batches, (pairs,).
            ends: The index after the last pair of each batch, (batches,).
            target_lengths: The lengths of all target sentences in the training set, (pairs,).
        """
        if len(ends) == 0:
            return cls(rows, ends, tokens=np.zeros(0, np.int64))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.intp)
        # Each element is the sum of the lengths from the start of one batch to that of the next.
        tokens = np.add.reduceat(target_lengths[rows], starts, dtype=np.int64)
        return cls(rows, ends, tokens)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self.ends)

    def __getitem__(self, index: int) -> Numbers:
        """Return the rows of a batch, (pairs of the batch,).

        Args:
            index: The index of the batch, from 0.

        Raises:
            IndexError: There is no such batch, which ends an iteration over the plan.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        start = self.ends[index - 1] if index > 0 else 0
        return self.rows[start : self.ends[index]].astype(np.int64)

    def __iter__(self) -> Iterator[Numbers]:
        """Yield the rows of each batch, in the order of the batches."""
        for index in range(len(self)):
            yield self[index]

    def in_order(self, order: Sequence[int] | Numbers) -> "EpochPlan":
        """Return a plan with the same batches in another order.

        Args:
            order: The index of the batch that comes first, second, and so on, (batches,).
        """
        batch_sizes = np.diff(self.ends, prepend=0)
        starts = self.ends - batch_sizes
        rows = np.empty_like(self.rows)
        ends = np.empty_like(self.ends)
        end = 0
        for position, index in enumerate(np.asarray(order).tolist()):
            batch = self.rows[starts[index] : self.ends[index]]
            start = end
            end = start + len(batch)
            rows[start:end] = batch
            ends[position] = end
        return EpochPlan(rows, ends, self.tokens[order])

    def write(self, path: Path) -> None:
        """Write the plan to a file, from which `read` maps it into memory.

        Args:
            path: The file.

        Raises:
            OSError: The operating system reports an error, such as a full disk.
        """
        header = np.array([len(self.ends), len(self.rows)], _NUMBER_TYPE)
        with path.open("wb") as file:
            for numbers in (header, self.ends, self.tokens):
                file.write(numbers.astype(_NUMBER_TYPE).data)
            file.write(self.rows.astype(row_type(len(self.rows)), copy=False).data)

    @classmethod
    def read(cls, path: Path) -> "EpochPlan":
        """Map the plan in a file into memory.

        The file may be removed afterwards: its content stays until no process has it mapped.

        Args:
            path: The file that `write` has written.

        Raises:
            DamagedFile: The file has another length than it says.
        """
        content: NDArray[np.uint8] = np.asarray(np.memmap(path, np.uint8, mode="r"))
        header_bytes = 2 * _NUMBER_TYPE.itemsize
        batch_count, pair_count = content[:header_bytes].view(_NUMBER_TYPE).tolist()
        numbers_end = header_bytes + 2 * batch_count * _NUMBER_TYPE.itemsize
        rows_end = numbers_end + pair_count * row_type(pair_count).itemsize
        if len(content) != rows_end:
            raise DamagedFile(path, f"it has {len(content)} bytes instead of {rows_end}")
        numbers = content[header_bytes:numbers_end].view(_NUMBER_TYPE)
        return cls(
            rows=content[numbers_end:].view(row_type(pair_count)),
            ends=numbers[:batch_count],
            tokens=numbers[batch_count:],
        )


def row_type(pair_count: int) -> "np.dtype[np.signedinteger[Any]]":
    """Return the type of the rows of a training set: 32-bit integers if they can number its pairs.

    Args:
        pair_count: The number of sentence pairs in the training set.
    """
    largest_row = pair_count - 1
    if largest_row <= np.iinfo(_SMALL_ROW_TYPE).max:
        return _SMALL_ROW_TYPE
    return _LARGE_ROW_TYPE
