"""Label-smoothed cross-entropy of a projection to the vocabulary, without holding its logits."""

import ctypes
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bleuprint import native
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.linear import IS_PORTABLE, Linear, linear, pad_rows, weight_gradient
from bleuprint.model.transformer import Transformer

SmoothingTarget = Literal["uniform", "non_target"]

# Bytes of logits that are computed at once: few on CPUs, so that they stay in cache; more on GPUs,
# whose products need many rows.
_BLOCK = {"cpu": 1 << 24, "cuda": 1 << 28}


def batch_loss(
    model: Transformer, batch: Batch, smoothing: float, target: SmoothingTarget = "uniform"
) -> Tensor:
    """The summed label-smoothed loss (nats) of a batch; padding is not projected."""
    hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
    hidden = hidden.flatten(0, 1).index_select(0, batch.label_positions)
    return linear_cross_entropy(hidden, model.projection, batch.labels, smoothing, target)


def linear_cross_entropy(
    hidden: Tensor,
    projection: Linear,
    labels: Tensor,
    smoothing: float,
    target: SmoothingTarget = "uniform",
) -> Tensor:
    """The summed loss (nats) of `labels` (N,) under the logits (N, V) of hidden states (N, D).

    The target distribution has 1 - smoothing on the label. The rest is spread evenly over all V
    tokens, the label included (uniform; Szegedy et al. 2016, section 7), or over the V - 2 that are
    neither the label nor PAD (non_target; The Annotated Transformer, OpenNMT-py). Both are
    cross-entropies: the entropy of the target is not subtracted. Computed in float32.

    Logits and their gradients are computed in blocks of rows: for a vocabulary of 10,000 tokens and
    batches of 4,096 they would take half of a training's memory.
    """
    weight, bias = projection.weight, projection.bias
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, projection.values(hidden.dtype), labels, smoothing, target
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed with the loss, while the logits of a block are at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        values: tuple[Tensor, Tensor | None],
        labels: Tensor,
        smoothing: float,
        target: SmoothingTarget,
    ) -> Tensor:
        total = weight.new_zeros(())
        needs_gradient = any(ctx.needs_input_grad)
        if needs_gradient:
            ctx.hidden = torch.empty_like(hidden)
            ctx.weight = torch.zeros_like(weight)
            ctx.bias = None if bias is None else torch.zeros_like(bias)
        rows = max(1, _BLOCK[hidden.device.type] // (weight.size(0) * hidden.itemsize))
        for start in range(0, len(labels), rows):
            block_labels = labels[start : start + rows]
            block = slice(start, start + len(block_labels))
            x = pad_rows(hidden[block])
            logits = linear(x, *values)
            if (loss := _native_loss(logits, block_labels, smoothing, target)) is not None:
                total += loss
                gradient = logits
            else:
                logs = logits[: len(block_labels)].to(weight.dtype).log_softmax(-1)
                total += _loss(logs, block_labels[:, None], smoothing, target)
                if needs_gradient:
                    gradient = _gradient(logs, block_labels[:, None], smoothing, target)
                    gradient = pad_rows(gradient.to(x.dtype))
            if needs_gradient:
                ctx.hidden[block] = linear(gradient, values[0].t(), None)[: len(block_labels)]
                ctx.weight += weight_gradient(x, gradient)
                if bias is not None:
                    ctx.bias += gradient.sum(0)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        bias = None if ctx.bias is None else ctx.bias.mul_(scale)
        return ctx.hidden.mul_(scale), ctx.weight.mul_(scale), bias, None, None, None, None


def _native_loss(
    logits: Tensor, labels: Tensor, smoothing: float, target: SmoothingTarget
) -> float | None:
    """The summed loss of logits (R, V), N of which have labels (N,); logits become the gradient.

    By native/loss.cpp, which takes a third of the time of `_loss` and `_gradient` in float32 and a
    quarter in bfloat16 (Zen 4). None if it is not to be had here: its rounding is not torch's.
    """
    library = native.library()
    on_cpu = logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.bfloat16)
    if library is None or IS_PORTABLE or not on_cpu:
        return None
    assert logits.is_contiguous() and labels.is_contiguous()
    probabilities = np.array(_distribution(logits.size(1), smoothing, target))
    library.cross_entropy.restype = ctypes.c_double
    sizes, half = (len(labels), logits.size(1)), logits.dtype == torch.bfloat16
    given = logits, half, labels, *sizes, probabilities, torch.get_num_threads()
    loss: float = library.cross_entropy(*native.arguments(*given))
    logits[len(labels) :] = 0
    return loss


def _loss(logs: Tensor, labels: Tensor, smoothing: float, target: SmoothingTarget) -> Tensor:
    """The summed cross-entropy of log-probabilities (N, V) and the distribution of `labels`."""
    other, label, pad = _distribution(logs.size(1), smoothing, target)
    loss = -(label - other) * logs.gather(1, labels).sum()
    if smoothing:
        loss -= other * logs.sum() + (pad - other) * logs[:, PAD].sum()
    return loss


def _gradient(logs: Tensor, labels: Tensor, smoothing: float, target: SmoothingTarget) -> Tensor:
    """The gradient of `_loss` by the logits: probabilities less the distribution; changes logs."""
    other, label, pad = _distribution(logs.size(1), smoothing, target)
    gradient = logs.exp_()
    if smoothing:
        gradient -= other
        gradient[:, PAD] -= pad - other
    return gradient.scatter_add_(1, labels, logs.new_full(labels.shape, other - label))


def _distribution(
    size: int, smoothing: float, target: SmoothingTarget
) -> tuple[float, float, float]:
    """The probability of a token other than the label, of the label, and of PAD."""
    if target == "uniform":
        other = smoothing / size
        return other, 1 - smoothing + other, other
    return smoothing / (size - 2), 1 - smoothing, 0.0
