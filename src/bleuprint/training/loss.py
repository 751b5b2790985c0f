"""Label-smoothed cross-entropy.

Computing the logits in blocks that stay in cache was no faster on CPUs than torch's own loss once
memory is kept between batches (runtime/reexec.py).
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
    """The summed label-smoothed loss (nats) of a batch; padding is not projected."""
    hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
    hidden = hidden.flatten(0, 1).index_select(0, batch.label_positions)
    return smoothed_loss(model.projection(hidden), batch.labels, smoothing, target)


def smoothed_loss(
    logits: Tensor, targets: Tensor, smoothing: float, target: SmoothingTarget = "uniform"
) -> Tensor:
    """The summed loss (nats) of `targets` (N,) under `logits` (N, V).

    The target distribution has 1 - smoothing on the label. The rest is spread evenly over all V
    tokens, the label included (uniform; Szegedy et al. 2016, section 7), or over the V - 2 that are
    neither the label nor PAD (non_target; The Annotated Transformer, OpenNMT-py). Both are
    cross-entropies: the entropy of the target is not subtracted. Computed in float32.
    """
    logits = logits.float()
    if target == "uniform" or not smoothing:
        return functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    logs = logits.log_softmax(-1)
    correct = logs.gather(1, targets[:, None]).sum()
    others = logs.sum() - correct - logs[:, PAD].sum()
    return -(1 - smoothing) * correct - smoothing / (logits.size(-1) - 2) * others
