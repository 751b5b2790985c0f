"""Label-smoothed cross-entropy.

A version that made, used and dropped the logits block by block, to keep them in cache, was no
faster on CPUs than torch's own once memory is kept between batches (allocator.py).
"""

from typing import Literal

from torch import Tensor
from torch.nn import functional

from bleuprint.dataset.batch import Batch
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.transformer import Transformer

SmoothingTarget = Literal["uniform", "non_target"]


def batch_loss(
    model: Transformer, batch: Batch, smoothing: float, target: SmoothingTarget = "uniform"
) -> Tensor:
    """The summed label-smoothed loss of a batch's target; padding is not projected."""
    hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
    words = hidden.flatten(0, 1).index_select(0, batch.label_positions)
    return smoothed_loss(model.projection(words), batch.labels, smoothing, target)


def smoothed_loss(
    logits: Tensor, targets: Tensor, smoothing: float, target: SmoothingTarget = "uniform"
) -> Tensor:
    """The summed loss (nats) of `targets` (N,) under `logits` (N, V).

    The smoothed target holds 1 - smoothing on the right word. What it lacks goes to all V words in
    equal parts, the right one among them (uniform; Szegedy et al. 2016, section 7), or to the
    V - 2 that are neither right nor PAD (non_target; The Annotated Transformer, OpenNMT-py). Both
    are cross-entropies: terms that only the target decides, such as its entropy, stay in.
    Computed in float32, whatever the logits' type.
    """
    logits = logits.float()
    if target == "uniform" or not smoothing:
        return functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    logs = logits.log_softmax(-1)
    right = logs.gather(1, targets[:, None]).sum()
    others = logs.sum() - right - logs[:, PAD].sum()
    return -(1 - smoothing) * right - smoothing / (logits.size(-1) - 2) * others
