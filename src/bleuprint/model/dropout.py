"""Dropout (Srivastava et al. 2014) that is fast on CPUs as well.

torch draws one random number an element on a single thread, which takes a tenth to a third of
training time on CPUs. Here four elements share one 64-bit number.
"""

import torch
from torch import Tensor
from torch.nn import functional

_LEVELS = 1 << 16  # each element gets 16 random bits


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Zero each element of x with probability p and scale the others by 1 / (1 - p).

    On CPUs p is rounded to a multiple of 1/65,536. Returns x itself outside training.
    """
    if not training or not p:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, p)
    limit = min(round(p * _LEVELS), _LEVELS - 1)
    numbers = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    levels = numbers.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (levels >= limit - _LEVELS // 2).to(x.dtype)
    return x * kept.mul_(_LEVELS / (_LEVELS - limit))
