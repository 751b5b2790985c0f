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
    """Flatten a batch to a matrix of rows, and append rows of zeros up to a round number.

    The library oneDNN compiles a kernel for each number of rows, which takes as long as several
    products. So the number is rounded up: to a multiple of 16 if it is below 128; otherwise to a
    number with 7 significant bits, which adds less than 2%.

    Args:
        x: A batch, (sentences, positions, columns).

    Returns:
        The rows, one for each position of each sentence, and rows of zeros, (rows, columns).
    """
    rows = x.flatten(0, -2)
    insignificant_bits = max(0, len(rows).bit_length() - _ROW_BITS)
    row_multiple = max(_ROW_MULTIPLE, 2**insignificant_bits)
    # The remainder of a negative number: how many rows are missing to the next multiple.
    missing_rows = -len(rows) % row_multiple
    if not missing_rows:
        return rows
    # `pad` takes two numbers for each dimension, from the last one on: columns, then rows.
    return functional.pad(rows, (0, 0, 0, missing_rows))


def unpad_rows(rows: Tensor, size: Size) -> Tensor:
    """Undo `pad_rows`: drop the added rows, and group the others by sentence.

    Args:
        rows: One row for each position of each sentence, and added rows, (rows, columns).
        size: The number of sentences, and the number of positions of each.

    Returns:
        The batch, (sentences, positions, columns), as a view.
    """
    sentences, positions = size
    return rows[: sentences * positions].view(sentences, positions, rows.size(-1))


def aligned_rows(matrix: Tensor) -> Tensor:
    """Return a weight with more rows, up to a multiple of 64, without copying it.

    GPUs take up to twice as long for products whose sizes are not multiples of 8 or 64. The
    additional rows are whatever follows the weight in memory. (In the optimizer, where all weights
    are one vector, that is 0.) So results that come from these rows must not be used.

    Args:
        matrix: A weight matrix; or a bias vector, whose elements count as rows.

    Returns:
        A view with more rows; the matrix itself if not enough memory follows it.
    """
    # Rounded up to a multiple.
    row_count = (len(matrix) + ROW_STEP - 1) // ROW_STEP * ROW_STEP
    elements_in_memory = matrix.untyped_storage().size() // matrix.itemsize
    available_elements = elements_in_memory - matrix.storage_offset()
    row_elements = matrix[0].numel()
    if row_count * row_elements > available_elements:
        return matrix
    return matrix.as_strided((row_count, *matrix.shape[1:]), matrix.stride())
