"""Label-smoothed cross-entropy of logits and its gradient, by a kernel in Triton (GPUs)."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bleuprint.dataset.subwords.vocabulary import PAD

# Logits that a program reads at once, and its warps.
_BLOCK, _WARPS = 4096, 8


def fused_loss(
    logits: Tensor, labels: Tensor, size: int, distribution: tuple[float, float, float]
) -> tuple[Tensor, Tensor]:
    """`bleuprint.training.loss.plain_loss`, but the gradient takes the place of the logits.

    A program reads its row twice, the second time from the GPU's cache, and writes it once.
    """
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    _cross_entropy[len(logits),](
        *(logits, labels, losses, logits.stride(0), logits.size(1), size, *distribution),
        *(PAD, _BLOCK),
        num_warps=_WARPS,
    )
    return losses.sum(), logits


@triton.jit  # type: ignore[untyped-decorator]
def _cross_entropy(  # type: ignore[no-untyped-def]
    logits,
    labels,
    losses,
    stride,
    columns,
    size,
    of_other,
    of_label,
    of_pad,
    pad: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    logits += row.to(tl.int64) * stride
    if label != pad:
        # before the first loop, since no warp waits for another between the loops
        x_label = tl.load(logits + label).to(tl.float32)
        x_pad = tl.load(logits + pad).to(tl.float32)
        highest, denominator, total = -float("inf"), 0.0, 0.0
        for start in range(0, size, block):
            at = start + tl.arange(0, block)
            x = tl.load(logits + at, mask=at < size, other=-float("inf")).to(tl.float32)
            higher = tl.maximum(highest, tl.max(x, 0))
            denominator = denominator * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), 0)
            total += tl.sum(tl.where(at < size, x, 0.0), 0)
            highest = higher
        log_sum = highest + tl.log(denominator)
        loss = (of_other - of_label) * (x_label - log_sum) + (of_other - of_pad) * (x_pad - log_sum)
        tl.store(losses + row, loss - of_other * (total - size * log_sum))
        for start in range(0, columns, block):
            at = start + tl.arange(0, block)
            x = tl.load(logits + at, mask=at < size, other=-float("inf")).to(tl.float32)
            expected = tl.where(at == label, of_label, tl.where(at == pad, of_pad, of_other))
            y = tl.where(at < size, tl.exp(x - log_sum) - expected, 0.0)
            tl.store(logits + at, y.to(logits.dtype.element_ty), mask=at < columns)
    else:
        tl.store(losses + row, 0.0)
        for start in range(0, columns, block):
            at = start + tl.arange(0, block)
            tl.store(logits + at, tl.zeros([block], logits.dtype.element_ty), mask=at < columns)
