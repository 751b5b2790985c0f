"""Label-smoothed cross-entropy.

A version that made, used and dropped the logits block by block, to keep them in cache, was no
faster on CPUs than torch's own once memory is kept between batches (allocator.py).
"""

from torch import Tensor
from torch.nn import functional


def smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The summed loss (nats) of `targets` (N,) under `logits` (N, V).

    The smoothed target holds 1 - smoothing on the right word and smoothing / V on every word
    (Szegedy et al. 2016, section 7). Taken in float32, whatever the logits are in.
    """
    return functional.cross_entropy(
        logits.float(), targets, label_smoothing=smoothing, reduction="sum"
    )
