"""Dropout (Srivastava et al. 2014), fast on CPUs too.

torch draws a random number for each element by one thread: a tenth to a third of a training's time
there. Here four elements share a number of 64 bits.
"""

import torch
from torch import Tensor
from torch.nn import functional

_STEPS = 1 << 16


def drop(x: Tensor, share: float, training: bool) -> Tensor:
    """x with a share of its elements set to 0, at random, and the others made larger by as much.

    On CPUs the share is taken to the next 65,536th. Nothing happens outside training.
    """
    if not training or not share:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(x, share)
    limit = min(round(share * _STEPS), _STEPS - 1)
    numbers = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    parts = numbers.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (parts >= limit - _STEPS // 2).to(x.dtype)
    return x * kept.mul_(_STEPS / (_STEPS - limit))
