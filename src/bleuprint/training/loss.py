"""Label-smoothed cross-entropy of a projection to the vocabulary, without holding its logits."""

import ctypes
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bleuprint import native
from bleuprint.dataset.packed_batch import PackedBatch, TrainingBatch
from bleuprint.dataset.subwords.vocabulary import PAD
from bleuprint.model.backends import IS_PORTABLE
from bleuprint.model.linear import Linear, linear, weight_gradient
from bleuprint.model.rows import aligned_rows, pad_rows
from bleuprint.model.transformer import Transformer

SmoothingTarget = Literal["uniform", "non_target"]
# The probability of a token other than the label, of the label, and of PAD.
Distribution: TypeAlias = tuple[float, float, float]

# Bytes of logits that are computed at once: few on CPUs, so that they stay in cache; more on GPUs,
# whose products need many rows.
_BLOCK = {"cpu": 1 << 24, "gpu": 1 << 28}


def batch_loss(
    model: Transformer,
    batch: TrainingBatch,
    smoothing: float,
    target: SmoothingTarget = "uniform",
) -> Tensor:
    """The summed label-smoothed loss (nats) of a batch; padding is not projected."""
    if isinstance(batch, PackedBatch):
        hidden, labels = model.packed_hidden_states(batch), batch.labels
        if labels.device.type == "cpu":
            hidden, labels = hidden[labels != PAD], labels[labels != PAD]
    else:
        hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
        hidden = hidden.flatten(0, 1).index_select(0, batch.label_positions)
        labels = batch.labels
    return linear_cross_entropy(
        hidden, model.projection, labels, smoothing, target, model.is_compiled
    )


def linear_cross_entropy(
    hidden: Tensor,
    projection: Linear,
    labels: Tensor,
    smoothing: float,
    target: SmoothingTarget = "uniform",
    compiled: bool = False,
) -> Tensor:
    """The summed loss (nats) of `labels` (N,) under the logits (N, V) of hidden states (N, D).

    On GPUs labels that are PAD do not count. The target distribution has 1 - smoothing on the
    label. The rest is spread evenly over all V tokens, the label included (uniform; Szegedy et al.
    2016, section 7), or over the V - 2 that are neither the label nor PAD (non_target; The
    Annotated Transformer, OpenNMT-py). Both are cross-entropies: the entropy of the target is not
    subtracted. Computed in float32.

    Logits and their gradients are computed in blocks of rows: for a vocabulary of 10,000 tokens and
    batches of 4,096 they would take half of a training's memory.
    """
    weight, bias = projection.weight, projection.bias
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, projection.values(hidden.dtype), labels, smoothing, target, compiled
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
        compiled: bool,
    ) -> Tensor:
        total = weight.new_zeros(())
        needs_gradient = any(ctx.needs_input_grad)
        if needs_gradient:
            ctx.hidden = torch.empty_like(hidden)
            ctx.weight = torch.zeros_like(weight)
            ctx.bias = None if bias is None else torch.zeros_like(bias)
        distribution, size = _distribution(weight.size(0), smoothing, target), weight.size(0)
        block_bytes = _BLOCK["cpu"]
        if hidden.device.type != "cpu":
            block_bytes = _BLOCK["gpu"]
            of_bias = None if values[1] is None else aligned_rows(values[1])
            values = aligned_rows(values[0]), of_bias
        block_rows = max(1, block_bytes // (size * hidden.itemsize))
        for start in range(0, len(labels), block_rows):
            block = slice(start, min(start + block_rows, len(labels)))
            x = pad_rows(hidden[block])
            logits = linear(x, *values)
            loss, gradient = _loss_and_gradient(
                logits, labels[block], size, distribution, compiled, needs_gradient
            )
            total += loss
            if needs_gradient:
                rows = block.stop - start
                ctx.hidden[block] = linear(gradient, values[0].t(), None)[:rows]
                ctx.weight += weight_gradient(x, gradient)[:size]
                if bias is not None:
                    ctx.bias += gradient.sum(0)[:size]
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (scale,) = gradients
        bias = None if ctx.bias is None else ctx.bias.mul_(scale)
        return ctx.hidden.mul_(scale), ctx.weight.mul_(scale), bias, None, None, None, None, None


def _loss_and_gradient(
    logits: Tensor,
    labels: Tensor,
    size: int,
    distribution: Distribution,
    compiled: bool,
    needs_gradient: bool,
) -> tuple[Tensor | float, Tensor]:
    """The summed loss of logits (R, at least V) of labels (N,), and its gradient by the logits.

    May change the logits, and return them if no gradient is needed. Rows beyond N and columns
    beyond the `size` V have the gradient 0.
    """
    if logits.device.type != "cpu" and needs_gradient:
        labels = functional.pad(labels, (0, len(logits) - len(labels)), value=PAD)
        compute = plain_loss
        if compiled:
            from bleuprint.training.loss_kernel import fused_loss as compute  # loads Triton
        return compute(logits, labels, size, distribution)
    if (loss := _native_loss(logits, labels, distribution)) is not None:
        return loss, logits
    logs = logits[: len(labels), :size].to(_number(logits)).log_softmax(-1)
    total = _loss(logs, labels[:, None], distribution)
    if not needs_gradient:
        return total, logits
    gradient = _gradient(logs, labels[:, None], distribution)
    return total, pad_rows(gradient.to(logits.dtype))


def plain_loss(
    logits: Tensor, labels: Tensor, size: int, distribution: Distribution
) -> tuple[Tensor, Tensor]:
    """`_loss_and_gradient` in torch's operations; labels that are PAD do not count."""
    other, label, pad = distribution
    columns = torch.arange(logits.size(1), device=logits.device)
    beyond, counted = columns >= size, (labels != PAD)[:, None]
    logs = logits.to(_number(logits)).masked_fill(beyond, -torch.inf).log_softmax(-1)
    expected = torch.where(columns == PAD, pad, other)
    expected = torch.where(columns == labels[:, None], label, expected).masked_fill(beyond, 0.0)
    loss = -(expected * logs.masked_fill(beyond, 0.0) * counted).sum(-1).sum()
    return loss, ((logs.exp() - expected) * counted).to(logits.dtype)


def _number(logits: Tensor) -> torch.dtype:
    """The type in which the loss of logits is computed: float32, or float64 of float64."""
    return torch.promote_types(logits.dtype, torch.float32)


def _native_loss(logits: Tensor, labels: Tensor, distribution: Distribution) -> float | None:
    """The summed loss of logits (R, V), N of which have labels (N,); logits become the gradient.

    By native/loss.cpp, which takes a third of the time of `_loss` and `_gradient` in float32 and a
    quarter in bfloat16 (Zen 4). None if it is not available: its rounding is not torch's.
    """
    library = native.library()
    on_cpu = logits.device.type == "cpu" and logits.dtype in (torch.float32, torch.bfloat16)
    if library is None or IS_PORTABLE or not on_cpu:
        return None
    assert logits.is_contiguous() and labels.is_contiguous()
    probabilities = np.array(distribution)
    library.cross_entropy.restype = ctypes.c_double
    sizes, half = (len(labels), logits.size(1)), logits.dtype == torch.bfloat16
    given = logits, half, labels, *sizes, probabilities, torch.get_num_threads()
    loss: float = library.cross_entropy(*native.c_arguments(*given))
    logits[len(labels) :] = 0
    return loss


def _loss(logs: Tensor, labels: Tensor, distribution: Distribution) -> Tensor:
    """The summed cross-entropy of log-probabilities (N, V) and the distribution of `labels`."""
    other, label, pad = distribution
    loss = -(label - other) * logs.gather(1, labels).sum()
    if other:
        loss -= other * logs.sum() + (pad - other) * logs[:, PAD].sum()
    return loss


def _gradient(logs: Tensor, labels: Tensor, distribution: Distribution) -> Tensor:
    """The gradient of `_loss` by the logits: probabilities less the distribution; changes logs."""
    other, label, pad = distribution
    gradient = logs.exp_()
    if other:
        gradient -= other
        gradient[:, PAD] -= pad - other
    return gradient.scatter_add_(1, labels, logs.new_full(labels.shape, other - label))


def _distribution(size: int, smoothing: float, target: SmoothingTarget) -> Distribution:
    """The probability of a token other than the label, of the label, and of PAD."""
    if target == "uniform":
        other = smoothing / size
        return other, 1 - smoothing + other, other
    return smoothing / (size - 2), 1 - smoothing, 0.0
