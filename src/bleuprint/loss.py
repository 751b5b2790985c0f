"""Label-smoothed cross-entropy, with the projection to the vocabulary in it.

The logits of a batch (N positions x V units) are far larger than a processor's cache, and a
plain implementation passes over them half a dozen times. Here they are made, used and turned
into gradients block by block of positions, and never kept.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# Logits of a block, in numbers: 4 MiB of float32 stay in a core's share of cache.
_BLOCK = 1 << 20


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        vocabulary = weight.size(0)
        hidden_grad, weight_grad = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        likelihood = torch.zeros_like(loss)
        rows = max(1, _BLOCK // vocabulary)
        for start in range(0, hidden.size(0), rows):
            part, wanted = hidden[start : start + rows], targets[start : start + rows, None]
            logits = (part @ weight.t()).float()
            total = torch.logsumexp(logits, dim=-1, keepdim=True)
            picked = total - logits.gather(1, wanted)
            spread = total * vocabulary - logits.sum(dim=-1, keepdim=True)
            likelihood += picked.sum()
            loss += (1 - smoothing) * picked.sum() + smoothing / vocabulary * spread.sum()
            # d loss / d logits = softmax - the smoothed target
            grad = logits.sub_(total).exp_().sub_(smoothing / vocabulary)
            grad.scatter_add_(1, wanted, torch.full_like(total, smoothing - 1))
            grad = grad.to(hidden.dtype)
            hidden_grad[start : start + rows] = grad @ weight
            weight_grad.addmm_(grad.t().to(weight.dtype), part.to(weight.dtype))
        context.save_for_backward(hidden_grad, weight_grad)
        context.mark_non_differentiable(likelihood)
        return loss, likelihood

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        hidden_grad, weight_grad = context.saved_tensors
        return hidden_grad * grads[0], weight_grad * grads[0], None, None


def projected_loss(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The summed loss and negative log-likelihood (nats) of `targets` (N,).

    `hidden` (N, D) times `weight` (V, D) are the logits. The smoothed target holds
    1 - smoothing on the right word and smoothing / V on every word (Szegedy et al. 2016,
    section 7), as in torch.nn.functional.cross_entropy. Only the loss has a gradient.
    """
    apply: Callable[..., tuple[Tensor, Tensor]] = _ProjectedLoss.apply
    return apply(hidden, weight, targets, smoothing)
