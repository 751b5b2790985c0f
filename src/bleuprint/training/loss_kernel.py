"""Label-smoothed cross-entropy of logits and its gradient, by a kernel in Triton for GPUs."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from bleuprint.dataset.subwords.vocabulary import PAD

# The number of logits that a program reads at once, and the number of its warps.
_BLOCK_LOGITS = 4096
_WARPS = 8


def fused_loss(
    logits: Tensor,
    labels: Tensor,
    vocabulary_size: int,
    distribution: tuple[float, float, float],
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of logits, and its gradient, by a Triton kernel on a GPU.

    The kernel runs one program for each row of logits, which computes the loss and the gradient of
    this row. `plain_loss` in loss.py computes the same with torch's operations.

    Args:
        logits: The logits, one row for each label. They may have more columns than there are tokens
            in the vocabulary. They are overwritten with the gradient.
        labels: The tokens to predict, (labels,). Labels that are PAD do not count.
        vocabulary_size: The number of tokens in the vocabulary.
        distribution: The probability that the model should give to another token than the label and
            PAD, to the label, and to PAD.

    Returns:
        The loss, summed over the labels, and its gradient in the shape of the logits. The gradient
        is 0 in the additional columns.
    """
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    other_probability, label_probability, pad_probability = distribution
    programs = (len(logits),)  # One for each row.
    _cross_entropy[programs](
        logits,
        labels,
        losses,
        logits.stride(0),
        logits.size(1),
        vocabulary_size,
        other_probability,
        label_probability,
        pad_probability,
        PAD,
        _BLOCK_LOGITS,
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
    other_probability,
    label_probability,
    pad_probability,
    pad: tl.constexpr,
    block: tl.constexpr,
):
    """Compute the cross-entropy of one row of logits, and overwrite the logits with the gradient.

    `logits`, `labels` and `losses` point to all rows, which are `stride` logits apart. The first
    `size` of their `columns` belong to the vocabulary; `block` columns are read at once. The first
    loop computes the loss: `denominator` sums exp(x - highest), where `highest` is the highest
    logit so far, so that nothing overflows ("online softmax"). The second computes the gradient.
    """
    row = tl.program_id(0)
    label = tl.load(labels + row)
    # In 64 bits: the logits may have more than 2^31 elements.
    logits += row.to(tl.int64) * stride
    if label != pad:
        # Read before the loops: in the second loop, threads that are ahead overwrite the logits.
        label_logit = tl.load(logits + label).to(tl.float32)
        pad_logit = tl.load(logits + pad).to(tl.float32)
        highest = -float("inf")
        denominator = 0.0
        logit_sum = 0.0
        for start in range(0, size, block):
            column = start + tl.arange(0, block)
            in_vocabulary = column < size
            x = tl.load(logits + column, mask=in_vocabulary, other=-float("inf")).to(tl.float32)
            higher = tl.maximum(highest, tl.max(x, 0))
            denominator = denominator * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), 0)
            logit_sum += tl.sum(tl.where(in_vocabulary, x, 0.0), 0)
            highest = higher
        log_sum = highest + tl.log(denominator)
        # Every token counts as another token; the differences of the label and PAD are added.
        label_loss = (other_probability - label_probability) * (label_logit - log_sum)
        pad_loss = (other_probability - pad_probability) * (pad_logit - log_sum)
        other_loss = other_probability * (logit_sum - size * log_sum)
        tl.store(losses + row, label_loss + pad_loss - other_loss)
        for start in range(0, columns, block):
            column = start + tl.arange(0, block)
            in_vocabulary = column < size
            x = tl.load(logits + column, mask=in_vocabulary, other=-float("inf")).to(tl.float32)
            expected = tl.where(column == pad, pad_probability, other_probability)
            expected = tl.where(column == label, label_probability, expected)
            gradient = tl.where(in_vocabulary, tl.exp(x - log_sum) - expected, 0.0)
            stored = gradient.to(logits.dtype.element_ty)
            tl.store(logits + column, stored, mask=column < columns)
    else:  # The label is PAD: the row does not count.
        tl.store(losses + row, 0.0)
        zeros = tl.zeros([block], logits.dtype.element_ty)
        for start in range(0, columns, block):
            column = start + tl.arange(0, block)
            tl.store(logits + column, zeros, mask=column < columns)
