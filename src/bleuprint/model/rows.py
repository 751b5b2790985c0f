"""Matrices with a few more rows than needed, which kernels compute faster.

Dimensions in shapes: the sentences in a batch, the positions of each, rows, and columns.
"""

from torch import Tensor
from torch.nn import functional

# The number of sentences, and the number of positions of each.
Size = tuple[int, int]

# On CPUs the number of rows is a multiple of this, and has so many significant bits.
_ROW_MULTIPLE = 16
_ROW_BITS = 7
# On GPUs the number of rows of weights is a multiple of this.
ROW_STEP = 64


def pad_rows(x: Tensor) -> Tensor:
    """Flatten a batch to rows, and append rows of zeros so that few numbers of rows occur.

    oneDNN compiles a kernel for each new shape, which takes as long as several products, and keeps
    it. Numbers with few significant bits are few: up to 128 rows are rounded up to multiples of 16,
    more rows by less than 2%.

    Args:
        x: A batch, (sentences, positions, columns).

    Returns:
        Its rows, (rows, columns), at least one for each position of each sentence.
    """
    rows = x.flatten(0, -2)
    row_multiple = max(_ROW_MULTIPLE, 1 << max(0, len(rows).bit_length() - _ROW_BITS))
    # The negative remainder: how many rows are missing to the next multiple.
    missing_rows = -len(rows) % row_multiple
    if not missing_rows:
        return rows
    return functional.pad(rows, (0, 0, 0, missing_rows))


def unpad_rows(rows: Tensor, size: Size) -> Tensor:
    """Return the batch that `pad_rows` made rows of.

    Args:
        rows: Rows, (rows, columns).
        size: The number of sentences, and the number of positions of each.

    Returns:
        The batch, (sentences, positions, columns), as a view.
    """
    sentences, positions = size
    return rows[: sentences * positions].view(sentences, positions, rows.size(-1))


def aligned_rows(matrix: Tensor) -> Tensor:
    """Return a weight together with what follows it in memory, up to a multiple of ROW_STEP rows.

    GPU kernels take up to twice as long for products whose sizes are not multiples of 8 or 64. The
    additional rows are whatever follows in memory (0 in the optimizer's vector of all weights), so
    the results that belong to them must not be used.

    Args:
        matrix: A matrix, or a vector, whose elements are the rows.

    Returns:
        A view with more rows; the matrix itself if its memory ends before.
    """
    row_count = (len(matrix) + ROW_STEP - 1) // ROW_STEP * ROW_STEP
    elements_in_memory = matrix.untyped_storage().size() // matrix.itemsize
    available_elements = elements_in_memory - matrix.storage_offset()
    row_elements = matrix[0].numel()
    if row_count * row_elements > available_elements:
        return matrix
    return matrix.as_strided((row_count, *matrix.shape[1:]), matrix.stride())
