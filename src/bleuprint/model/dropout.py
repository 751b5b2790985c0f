"""Dropout (Srivastava et al. 2014) that is fast on CPUs as well.

torch draws one random number per element on a single thread, which takes a tenth to a third of
training time on CPUs. Here four elements share one random number of 64 bits.
"""

import torch
from torch import Tensor
from torch.nn import functional

# The bits of a random number that decide about one element, and how many elements share a number.
_BITS_PER_ELEMENT = 16
_ELEMENTS_PER_NUMBER = 64 // _BITS_PER_ELEMENT
# The values of 16 bits, from -32,768 to 32,767 as signed integers.
_LEVELS = 1 << _BITS_PER_ELEMENT


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p).

    Args:
        x: Any tensor.
        p: The probability. On CPUs it is rounded to a multiple of 1/65,536.
        training: Whether the model is trained; otherwise `x` itself is returned.

    Returns:
        A tensor in the shape and type of `x`.
    """
    if not training or not p:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, p)
    # At least one level remains: otherwise the scale would be infinite.
    dropped_levels = min(round(p * _LEVELS), _LEVELS - 1)
    number_count = (x.numel() + _ELEMENTS_PER_NUMBER - 1) // _ELEMENTS_PER_NUMBER
    numbers = torch.empty(number_count, dtype=torch.int64).random_(-(2**63), None)
    # The last number may have bits for more elements than there are.
    levels = numbers.view(torch.int16)[: x.numel()].view(x.shape)
    lowest_level = -_LEVELS // 2
    is_kept = (levels >= lowest_level + dropped_levels).to(x.dtype)
    # In place: the mask becomes the factor 0 or 1 / (1 - p) of each element.
    return x * is_kept.mul_(_LEVELS / (_LEVELS - dropped_levels))
