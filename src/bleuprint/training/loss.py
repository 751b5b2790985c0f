"""Label-smoothed cross-entropy of the output projection, without holding all logits in memory.

The logits of a batch, one for each label and each token of the vocabulary, need more memory than
everything else. So hidden states are projected in blocks of rows. The gradients of a block are
computed together with its loss, while its logits are at hand, and then the logits are dropped.

The loss of a block is computed by C++ (native/loss.cpp) on CPUs, by a Triton kernel
(loss_kernel.py) on GPUs, or by torch's operations where these are not available.
"""

import ctypes
from typing import Any, Literal, NamedTuple

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

# The number of bytes of logits that are computed at once: few on CPUs, so that they stay in cache;
# more on GPUs, whose products need many rows.
_BLOCK_BYTES = {"cpu": 1 << 24, "gpu": 1 << 28}


class TargetDistribution(NamedTuple):
    """The probabilities that a model should give to the tokens of the vocabulary.

    Attributes:
        other: The probability of a token other than the label and PAD.
        label: The probability of the label.
        pad: The probability of PAD.
    """

    other: float
    label: float
    pad: float


def batch_loss(
    model: Transformer,
    batch: TrainingBatch,
    smoothing: float,
    smoothing_target: SmoothingTarget = "uniform",
) -> Tensor:
    """Return the summed label-smoothed loss of a batch in nats; positions of PAD do not count.

    This is the forward pass of training and of validation.

    Args:
        model: The model.
        batch: The batch, on the model's device.
        smoothing: The probability that is not the label's.
        smoothing_target: Which tokens share this probability (see `linear_cross_entropy`).
    """
    if isinstance(batch, PackedBatch):
        hidden = model.packed_hidden_states(batch)
        labels = batch.labels
        # On GPUs, the loss ignores PAD: selecting rows here would mean waiting for their number.
        if labels.device.type == "cpu":
            is_counted = labels != PAD
            hidden = hidden[is_counted]
            labels = labels[is_counted]
    else:
        hidden = model.label_states(batch)
        labels = batch.labels
    return linear_cross_entropy(
        hidden, model.projection, labels, smoothing, smoothing_target, model.is_compiled
    )


def linear_cross_entropy(
    hidden: Tensor,
    projection: Linear,
    labels: Tensor,
    smoothing: float,
    smoothing_target: SmoothingTarget = "uniform",
    is_compiled: bool = False,
) -> Tensor:
    """Return the summed cross-entropy of labels and the projection of hidden states, in nats.

    The target distribution gives the label the probability 1 - smoothing. The rest is spread evenly
    over all tokens, the label included (uniform; Szegedy et al. 2016, section 7), or over the
    tokens other than the label and PAD (non_target; The Annotated Transformer, OpenNMT-py).
    The entropy of the target distribution is not subtracted.

    Args:
        hidden: The hidden states, (rows, model_dim).
        projection: The projection to the tokens of the vocabulary.
        labels: The tokens to predict, (rows,). On GPUs, labels that are PAD do not count.
        smoothing: The probability that is not the label's.
        smoothing_target: Which tokens share this probability.
        is_compiled: Whether a GPU computes the loss by the Triton kernel.

    Returns:
        The loss, a scalar, computed in float32.
    """
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden,
        projection.weight,
        projection.bias,
        projection.values(hidden.dtype),
        labels,
        smoothing,
        smoothing_target,
        is_compiled,
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    """The loss of `linear_cross_entropy`, whose forward pass also computes all gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        values: tuple[Tensor, Tensor | None],
        labels: Tensor,
        smoothing: float,
        smoothing_target: SmoothingTarget,
        is_compiled: bool,
    ) -> Tensor:
        """Compute the loss, and keep the gradients of hidden states, weight and bias in `ctx`.

        `weight` and `bias` are the parameters in float32, which get the gradients; `values` are the
        same numbers in the type of the hidden states, which the products take.
        """
        total_loss = weight.new_zeros(())
        needs_gradient = any(ctx.needs_input_grad)
        if needs_gradient:
            ctx.hidden = torch.empty_like(hidden)
            ctx.weight = torch.zeros_like(weight)
            ctx.bias = None if bias is None else torch.zeros_like(bias)
        vocabulary_size = weight.size(0)
        distribution = _target_distribution(vocabulary_size, smoothing, smoothing_target)
        weight_values, bias_values = values
        block_bytes = _BLOCK_BYTES["cpu"]
        if hidden.device.type != "cpu":
            block_bytes = _BLOCK_BYTES["gpu"]
            # GPUs prefer some numbers of rows, so the rows after the weight in its memory are
            # multiplied as well. The columns of the logits beyond the vocabulary are not used.
            weight_values = aligned_rows(weight_values)
            bias_values = None if bias_values is None else aligned_rows(bias_values)
        block_rows = max(1, block_bytes // (vocabulary_size * hidden.itemsize))
        for start in range(0, len(labels), block_rows):
            end = min(start + block_rows, len(labels))
            # May have more rows than the block, of zeros, which are not used either.
            hidden_block = pad_rows(hidden[start:end])
            logits = linear(hidden_block, weight_values, bias_values)
            loss, gradient = _loss_and_gradient(
                logits,
                labels[start:end],
                vocabulary_size,
                distribution,
                is_compiled,
                needs_gradient,
            )
            total_loss += loss
            if needs_gradient:
                hidden_gradient = linear(gradient, weight_values.t(), None)
                ctx.hidden[start:end] = hidden_gradient[: end - start]
                ctx.weight += weight_gradient(hidden_block, gradient)[:vocabulary_size]
                if bias is not None:
                    ctx.bias += gradient.sum(0)[:vocabulary_size]
        return total_loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the kept gradients times the gradient of the loss, which is a scalar."""
        (scale,) = gradients
        bias_gradient = None if ctx.bias is None else ctx.bias.mul_(scale)
        # One for each argument of `forward`; the last five need no gradient.
        return (
            ctx.hidden.mul_(scale),
            ctx.weight.mul_(scale),
            bias_gradient,
            None,
            None,
            None,
            None,
            None,
        )


def _loss_and_gradient(
    logits: Tensor,
    labels: Tensor,
    vocabulary_size: int,
    distribution: TargetDistribution,
    is_compiled: bool,
    needs_gradient: bool,
) -> tuple[Tensor | float, Tensor]:
    """Return the summed loss of logits, and its gradient by the logits.

    Args:
        logits: The logits, (at least rows, at least vocabulary); they may be overwritten.
        labels: The labels, (rows,).
        vocabulary_size: The number of tokens of the vocabulary.
        distribution: The target distribution.
        is_compiled: Whether a GPU computes the loss by the Triton kernel.
        needs_gradient: Whether the gradient is needed; if not, the second result has no meaning.

    Returns:
        The loss, and the gradient in the shape of the logits: 0 in rows after the labels and in
        columns after the vocabulary.
    """
    if logits.device.type != "cpu" and needs_gradient:
        missing_labels = len(logits) - len(labels)
        padded_labels = functional.pad(labels, (0, missing_labels), value=PAD)
        if is_compiled:
            from bleuprint.training.loss_kernel import fused_loss  # Imports Triton.

            return fused_loss(logits, padded_labels, vocabulary_size, distribution)
        return plain_loss(logits, padded_labels, vocabulary_size, distribution)
    native_loss = _native_loss(logits, labels, distribution)
    if native_loss is not None:
        return native_loss, logits
    used_logits = logits[: len(labels), :vocabulary_size]
    log_probabilities = used_logits.to(_loss_dtype(logits)).log_softmax(-1)
    loss = _loss(log_probabilities, labels[:, None], distribution)
    if not needs_gradient:
        return loss, logits
    gradient = _gradient(log_probabilities, labels[:, None], distribution)
    return loss, pad_rows(gradient.to(logits.dtype))


def plain_loss(
    logits: Tensor, labels: Tensor, vocabulary_size: int, distribution: TargetDistribution
) -> tuple[Tensor, Tensor]:
    """Compute the loss and its gradient by torch's operations, without waiting for a GPU.

    Args:
        logits: The logits, (rows, at least vocabulary).
        labels: The labels, (rows,); those that are PAD do not count.
        vocabulary_size: The number of tokens of the vocabulary.
        distribution: The target distribution.

    Returns:
        The summed loss, and the gradient by the logits, 0 in columns after the vocabulary.
    """
    columns = torch.arange(logits.size(1), device=logits.device)
    is_beyond = columns >= vocabulary_size
    is_counted = (labels != PAD)[:, None]
    masked_logits = logits.to(_loss_dtype(logits)).masked_fill(is_beyond, -torch.inf)
    log_probabilities = masked_logits.log_softmax(-1)
    # The label may be any token, so its probability is written last.
    expected = torch.where(columns == PAD, distribution.pad, distribution.other)
    expected = torch.where(columns == labels[:, None], distribution.label, expected)
    expected = expected.masked_fill(is_beyond, 0.0)
    # 0 times the infinite logarithm of a column after the vocabulary would not be a number.
    finite_log_probabilities = log_probabilities.masked_fill(is_beyond, 0.0)
    loss = -(expected * finite_log_probabilities * is_counted).sum(-1).sum()
    gradient = (log_probabilities.exp() - expected) * is_counted
    return loss, gradient.to(logits.dtype)


def _loss_dtype(logits: Tensor) -> torch.dtype:
    """Return the type in which the loss is computed: float32, or float64 for logits in float64."""
    return torch.promote_types(logits.dtype, torch.float32)


def _native_loss(logits: Tensor, labels: Tensor, distribution: TargetDistribution) -> float | None:
    """Compute the loss by native/loss.cpp, which overwrites the logits with their gradient.

    It takes a third of the time of `_loss` and `_gradient` in float32, and a quarter in bfloat16
    (Zen 4). It is not used with portable arithmetic, since its rounding depends on the processor.

    Args:
        logits: The logits, (at least rows, vocabulary).
        labels: The labels, (rows,).
        distribution: The target distribution.

    Returns:
        The summed loss; None if C++ cannot compute it.
    """
    library = native.library()
    is_on_cpu = logits.device.type == "cpu"
    is_supported_type = logits.dtype in (torch.float32, torch.bfloat16)
    if library is None or IS_PORTABLE or not is_on_cpu or not is_supported_type:
        return None
    assert logits.is_contiguous() and labels.is_contiguous()
    library.cross_entropy.restype = ctypes.c_double
    arguments = native.c_arguments(
        logits,  # C++ overwrites them with their gradient.
        logits.dtype == torch.bfloat16,
        labels,
        len(labels),
        logits.size(1),  # The size of the vocabulary.
        np.array(distribution),
        torch.get_num_threads(),
    )
    loss: float = library.cross_entropy(*arguments)
    # Rows after the labels are padding, whose gradient is 0.
    logits[len(labels) :] = 0
    return loss


def _loss(log_probabilities: Tensor, labels: Tensor, distribution: TargetDistribution) -> Tensor:
    """Return the summed cross-entropy of a target distribution and the model's probabilities.

    The sum is computed as if all tokens had the probability `other`, and then corrected by the
    difference of the label's probability, and of PAD's, to `other`.

    Args:
        log_probabilities: The logarithms of the model's probabilities, (rows, vocabulary).
        labels: The labels, (rows, 1).
        distribution: The target distribution.
    """
    other, label, pad = distribution
    loss = -(label - other) * log_probabilities.gather(1, labels).sum()
    if other:
        loss -= other * log_probabilities.sum() + (pad - other) * log_probabilities[:, PAD].sum()
    return loss


def _gradient(
    log_probabilities: Tensor, labels: Tensor, distribution: TargetDistribution
) -> Tensor:
    """Return the gradient of `_loss` by the logits: the probabilities minus the distribution.

    Args:
        log_probabilities: The logarithms of the model's probabilities, (rows, vocabulary);
            overwritten.
        labels: The labels, (rows, 1).
        distribution: The target distribution.
    """
    other, label, pad = distribution
    gradient = log_probabilities.exp_()
    if other:
        gradient -= other
        gradient[:, PAD] -= pad - other
    label_difference = log_probabilities.new_full(labels.shape, other - label)
    return gradient.scatter_add_(1, labels, label_difference)


def _target_distribution(
    vocabulary_size: int, smoothing: float, smoothing_target: SmoothingTarget
) -> TargetDistribution:
    """Return the target distribution of a label; with `uniform`, PAD is an ordinary token."""
    if smoothing_target == "uniform":
        other = smoothing / vocabulary_size
        return TargetDistribution(other=other, label=1 - smoothing + other, pad=other)
    other = smoothing / (vocabulary_size - 2)
    return TargetDistribution(other=other, label=1 - smoothing, pad=0.0)
