"""Matrices with a few more rows than needed, which kernels compute faster.

Dimensions in shapes: the sentences in a batch, the positions of each, rows, and columns.
"""

from torch import Tensor
from torch.nn import functional

from bleuprint.runtime.rounding import round_up

# The number of sentences, and the number of positions of each.
Size = tuple[int, int]

# On CPUs, the number of rows is a multiple of this, and has so many significant bits.
_CPU_ROW_MULTIPLE = 16
_CPU_ROW_BITS = 7
# On GPUs, the number of rows of weights is a multiple of this.
GPU_ROW_MULTIPLE = 64


def pad_rows(x: Tensor) -> Tensor:
    """Flatten a batch to a matrix of rows, and append rows of zeros up to a round number.

    The library oneDNN compiles a kernel for each number of rows, which takes as long as several
    matrix products. Rounding up makes few numbers occur: multiples of 16 up to 2,048, multiples of
    32 up to 4,096, and so on. For large batches, this adds less than 2% of rows.

    Args:
        x: A batch, (sentences, positions, columns).

    Returns:
        The rows, one for each position of each sentence, and rows of zeros, (rows, columns).
    """
    rows = x.flatten(0, -2)
    # The last bits of the number become 0, so that 7 significant bits are left.
    zero_bits = max(0, len(rows).bit_length() - _CPU_ROW_BITS)
    row_multiple = max(_CPU_ROW_MULTIPLE, 2**zero_bits)
    # The remainder of a negative number is what is missing to the next multiple: -30 % 16 is 2.
    missing_rows = -len(rows) % row_multiple
    if not missing_rows:
        return rows
    # `pad` takes two numbers for each dimension, from the last one on: columns, then rows.
    return functional.pad(rows, (0, 0, 0, missing_rows))


def unpad_rows(rows: Tensor, size: Size) -> Tensor:
    """Undo `pad_rows`: drop the appended rows, and group the others by sentence.

    Args:
        rows: One row for each position of each sentence, and appended rows, (rows, columns).
        size: The number of sentences, and the number of positions of each.

    Returns:
        The batch, (sentences, positions, columns), as a view.
    """
    sentences, positions = size
    return rows[: sentences * positions].view(sentences, positions, rows.size(-1))


def aligned_rows(matrix: Tensor) -> Tensor:
    """Return a weight with more rows, up to a multiple of 64, without copying it.

    GPUs take up to twice as long for products whose sizes are not multiples of 8 or 64. The
    additional rows are whatever follows the weight in memory, so results that come from these rows
    must not be used. (In training, all weights are parts of one vector, and zeros follow each.)

    Args:
        matrix: A weight matrix; or a bias vector, whose elements count as rows.

    Returns:
        A view with more rows; the matrix itself if not enough memory follows it.
    """
    row_count = round_up(len(matrix), GPU_ROW_MULTIPLE)
    # How many elements there are from the start of the weight to the end of its memory.
    elements_in_memory = matrix.untyped_storage().size() // matrix.itemsize
    available_elements = elements_in_memory - matrix.storage_offset()
    row_elements = matrix[0].numel()
    if row_count * row_elements > available_elements:
        return matrix
    return matrix.as_strided((row_count, *matrix.shape[1:]), matrix.stride())
