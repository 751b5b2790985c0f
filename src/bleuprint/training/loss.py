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
from bleuprint.model.backends import native_cross_entropy
from bleuprint.model.linear import Linear, linear, weight_gradient
from bleuprint.model.rows import aligned_rows, pad_rows
from bleuprint.model.transformer import Transformer

SmoothingTarget = Literal["uniform", "non_target"]

# The number of bytes of logits that are computed at once: few on CPUs, so that they stay in cache;
# more on GPUs, whose products need many rows.
_BLOCK_BYTES = {"cpu": 1 << 24, "gpu": 1 << 28}


class TargetDistribution(NamedTuple):
    """The probabilities that the model should give to the next token, with label smoothing.

    Attributes:
        other_token: The probability of each token other than the label and PAD.
        label: The probability of the label, the token that really follows.
        pad: The probability of PAD.
    """

    other_token: float
    label: float
    pad: float


def batch_loss(
    model: Transformer,
    batch: TrainingBatch,
    smoothing: float,
    smoothing_target: SmoothingTarget = "uniform",
) -> Tensor:
    """Return the label-smoothed loss of a batch in nats, summed over its target tokens.

    This is the forward pass of training and of validation. Padding does not count.

    Args:
        model: The model.
        batch: The batch, on the model's device. In a padded batch, short sentences are filled up
            with PAD. In a packed one, sentences stand one after the other, and only its end is
            filled up.
        smoothing: The probability that label smoothing takes from the label, such as 0.1.
        smoothing_target: Which tokens get this probability: `uniform`, all tokens; or `non_target`,
            the tokens other than the label and PAD.
    """
    if isinstance(batch, PackedBatch):
        hidden = model.packed_hidden_states(batch)
        labels = batch.labels
        # On CPUs, leaving out the rows whose label is PAD saves time. On GPUs, the CPU would have
        # to wait until the GPU has counted them, so the loss ignores PAD instead.
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
    """Project hidden states to logits, and return their label-smoothed cross-entropy in nats.

    Both are one operation, so that the logits of all labels are never in memory at once.

    Label smoothing takes a probability from the label, and spreads it evenly over other tokens:
    over all tokens, the label included (uniform; Szegedy et al. 2016, section 7), or over the
    tokens other than the label and PAD (non_target; The Annotated Transformer, OpenNMT-py). The
    entropy of this target distribution is not subtracted, so the loss of a perfect model is not 0.

    Args:
        hidden: Hidden states, one row for each label, (labels, d_model).
        projection: The projection from hidden states to the logits of the vocabulary.
        labels: The tokens to predict, (labels,). On GPUs, labels that are PAD do not count.
        smoothing: The probability that label smoothing takes from the label, such as 0.1.
        smoothing_target: Which tokens get this probability, `uniform` or `non_target`.
        is_compiled: Whether a GPU computes the loss by the Triton kernel.

    Returns:
        The loss, summed over the labels, a scalar in float32.
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
    """The operation of `linear_cross_entropy`, for autograd.

    Its forward pass also computes the gradients, because they need the logits, which are not kept
    until the backward pass.
    """

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
        """Return the loss, and keep the gradients of hidden states, weight and bias in `ctx`.

        To save memory, a block of logits at a time is computed, and dropped after its gradient.

        Args:
            ctx: Keeps the gradients for the backward pass.
            hidden: Hidden states, one row for each label, (labels, d_model).
            weight: The weight of the projection in float32, (vocabulary, d_model).
            bias: The bias of the projection in float32, or None.
            values: Weight and bias in the type of the hidden states, for the product.
            labels: The tokens to predict, (labels,).
            smoothing: The probability that label smoothing takes from the label.
            smoothing_target: Which tokens get this probability.
            is_compiled: Whether a GPU computes the loss by the Triton kernel.
        """
        total_loss = weight.new_zeros(())
        needs_gradient = any(ctx.needs_input_grad)
        if needs_gradient:
            ctx.hidden = torch.empty_like(hidden)
            ctx.weight = torch.zeros_like(weight)
            ctx.bias = None if bias is None else torch.zeros_like(bias)
        vocabulary_size = len(weight)
        distribution = _target_distribution(vocabulary_size, smoothing, smoothing_target)
        weight_values, bias_values = values
        if hidden.device.type != "cpu":
            # Faster with a multiple of 64 rows. The logits of added rows are ignored.
            weight_values = aligned_rows(weight_values)
            bias_values = None if bias_values is None else aligned_rows(bias_values)
        block_size = _labels_in_block(vocabulary_size, hidden)
        for start in range(0, len(labels), block_size):
            end = min(start + block_size, len(labels))
            # CPUs are faster with some numbers of rows. The logits of added rows are ignored.
            hidden_block = pad_rows(hidden[start:end])
            loss, gradient = _loss_and_gradient(
                linear(hidden_block, weight_values, bias_values),
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
        """Return the gradients that the forward pass has computed, times the gradient of the loss.

        Args:
            ctx: Contains the gradients of the loss with respect to hidden states, weight and bias.
            gradients: The gradient with respect to the loss, the only output: a scalar.
        """
        (loss_gradient,) = gradients
        bias_gradient = None if ctx.bias is None else ctx.bias.mul_(loss_gradient)
        # torch expects one gradient for each argument of `forward`. The last five arguments, such
        # as the labels, have none.
        return (
            ctx.hidden.mul_(loss_gradient),
            ctx.weight.mul_(loss_gradient),
            bias_gradient,
            None,
            None,
            None,
            None,
            None,
        )


def _labels_in_block(vocabulary_size: int, hidden: Tensor) -> int:
    """Return for how many labels logits are computed at once, so that they do not fill the memory.

    Args:
        vocabulary_size: The number of tokens in the vocabulary. Each label has as many logits.
        hidden: The hidden states. The logits have the same device and type.
    """
    block_bytes = _BLOCK_BYTES["cpu" if hidden.device.type == "cpu" else "gpu"]
    bytes_per_label = vocabulary_size * hidden.itemsize
    return max(1, block_bytes // bytes_per_label)


def _loss_and_gradient(
    logits: Tensor,
    labels: Tensor,
    vocabulary_size: int,
    distribution: TargetDistribution,
    is_compiled: bool,
    needs_gradient: bool,
) -> tuple[Tensor | float, Tensor]:
    """Return the cross-entropy of logits, and its gradient, by the fastest available code.

    On GPUs this is a Triton kernel or torch; on CPUs, C++ or torch.

    Args:
        logits: The logits, at least (labels, vocabulary). There may be more rows and columns,
            because some sizes of matrix products are faster. They may be overwritten.
        labels: The tokens to predict, (labels,).
        vocabulary_size: The number of tokens in the vocabulary.
        distribution: The probabilities that the model should give to the tokens.
        is_compiled: Whether a GPU computes the loss by the Triton kernel.
        needs_gradient: Whether the gradient is needed. If not, as in validation, the second result
            is meaningless.

    Returns:
        The loss, summed over the labels, and its gradient in the shape of the logits. The gradient
        is 0 in the additional rows and columns.
    """
    if logits.device.type != "cpu" and needs_gradient:
        # The labels of additional rows are PAD, which does not count.
        missing_labels = len(logits) - len(labels)
        padded_labels = functional.pad(labels, (0, missing_labels), value=PAD)
        if is_compiled:
            from bleuprint.training.loss_kernel import fused_loss  # Imports Triton.

            return fused_loss(logits, padded_labels, vocabulary_size, distribution)
        return plain_loss(logits, padded_labels, vocabulary_size, distribution)
    native_loss = _native_loss(logits, labels, distribution)
    if native_loss is not None:
        # C++ has overwritten the logits with their gradient.
        return native_loss, logits
    # Without C++, and for validation on a GPU.
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
    """Return the cross-entropy of logits, and its gradient, by torch's operations on a GPU.

    Labels that are PAD are multiplied by 0 instead of being left out: to leave them out, the CPU
    would have to wait until the GPU has counted them.

    Args:
        logits: The logits, one row for each label. They may have more columns than there are tokens
            in the vocabulary.
        labels: The tokens to predict, (labels,). Labels that are PAD do not count.
        vocabulary_size: The number of tokens in the vocabulary.
        distribution: The probabilities that the model should give to the tokens.

    Returns:
        The loss, summed over the labels, and its gradient in the shape of the logits. The gradient
        is 0 in the additional columns.
    """
    columns = torch.arange(logits.size(1), device=logits.device)
    is_beyond = columns >= vocabulary_size
    is_counted = (labels != PAD)[:, None]
    masked_logits = logits.to(_loss_dtype(logits)).masked_fill(is_beyond, -torch.inf)
    log_probabilities = masked_logits.log_softmax(-1)
    # The probabilities that the model should give to each token.
    expected = torch.where(columns == PAD, distribution.pad, distribution.other_token)
    expected = torch.where(columns == labels[:, None], distribution.label, expected)
    expected = expected.masked_fill(is_beyond, 0.0)
    # Beyond the vocabulary, logarithms are -inf, and the product 0 * -inf would be NaN.
    finite_log_probabilities = log_probabilities.masked_fill(is_beyond, 0.0)
    loss = -(expected * finite_log_probabilities * is_counted).sum(-1).sum()
    gradient = (log_probabilities.exp() - expected) * is_counted
    return loss, gradient.to(logits.dtype)


def _loss_dtype(logits: Tensor) -> torch.dtype:
    """Return the type in which the loss of logits is computed: float32, or float64 for float64."""
    return torch.promote_types(logits.dtype, torch.float32)


def _native_loss(logits: Tensor, labels: Tensor, distribution: TargetDistribution) -> float | None:
    """Compute the cross-entropy of logits in C++, and overwrite the logits with their gradient.

    This is native/loss.cpp. It takes a third of the time of torch's operations in float32, and a
    quarter in bfloat16 (Zen 4).

    Args:
        logits: The logits, with as many columns as tokens in the vocabulary. They may have more
            rows than there are labels.
        labels: The tokens to predict, (labels,).
        distribution: The probabilities that the model should give to the tokens.

    Returns:
        The loss, summed over the labels. None if C++ cannot compute it; then the logits are
        unchanged.
    """
    library = native_cross_entropy(logits)
    if library is None:
        return None
    assert logits.is_contiguous() and labels.is_contiguous()
    library.cross_entropy.restype = ctypes.c_double
    # C++ gets only the address of this array. The variable keeps the array in memory until C++ has
    # returned; otherwise another thread could overwrite it.
    probabilities = np.array(distribution)
    arguments = native.c_arguments(
        logits,  # C++ overwrites them with their gradient.
        logits.dtype == torch.bfloat16,
        labels,
        len(labels),
        logits.size(1),  # The size of the vocabulary.
        probabilities,
        torch.get_num_threads(),
    )
    loss: float = library.cross_entropy(*arguments)
    # Rows after the labels are padding, whose gradient is 0.
    logits[len(labels) :] = 0
    return loss


def _loss(log_probabilities: Tensor, labels: Tensor, distribution: TargetDistribution) -> Tensor:
    """Return the cross-entropy of the model's probabilities, summed over the labels.

    For one label, the cross-entropy is minus the sum of target probability x log-probability over
    all tokens. All tokens except two have the target probability `other_token`. So the sum is
    computed as if all tokens had it, and then corrected for the label and for PAD.

    Args:
        log_probabilities: The model's log-probabilities of all tokens, (labels, vocabulary).
        labels: The tokens to predict, (labels, 1).
        distribution: The probabilities that the model should give to the tokens.
    """
    other_token, label, pad = distribution
    loss = -(label - other_token) * log_probabilities.gather(1, labels).sum()
    if other_token:  # Without label smoothing, `other_token` and `pad` are 0.
        loss -= (
            other_token * log_probabilities.sum()
            + (pad - other_token) * log_probabilities[:, PAD].sum()
        )
    return loss


def _gradient(
    log_probabilities: Tensor, labels: Tensor, distribution: TargetDistribution
) -> Tensor:
    """Return the gradient of the cross-entropy with respect to the logits.

    It is the probability that the model gives to each token, minus its target probability.

    Args:
        log_probabilities: The model's log-probabilities of all tokens, (labels, vocabulary). They
            are overwritten with the gradient.
        labels: The tokens to predict, (labels, 1).
        distribution: The probabilities that the model should give to the tokens.
    """
    other_token, label, pad = distribution
    gradient = log_probabilities.exp_()
    # `other_token` is subtracted from all tokens; then PAD and the label are corrected.
    if other_token:  # Without label smoothing, `other_token` and `pad` are 0.
        gradient -= other_token
        gradient[:, PAD] -= pad - other_token
    label_difference = log_probabilities.new_full(labels.shape, other_token - label)
    return gradient.scatter_add_(1, labels, label_difference)


def _target_distribution(
    vocabulary_size: int, smoothing: float, smoothing_target: SmoothingTarget
) -> TargetDistribution:
    """Return the probabilities that the model should give to the tokens, with label smoothing.

    Args:
        vocabulary_size: The number of tokens in the vocabulary.
        smoothing: The probability that label smoothing takes from the label.
        smoothing_target: Which tokens get this probability: `uniform`, all tokens, also the label
            and PAD; or `non_target`, the tokens other than the label and PAD.
    """
    if smoothing_target == "uniform":
        other_token = smoothing / vocabulary_size
        return TargetDistribution(
            other_token=other_token, label=1 - smoothing + other_token, pad=other_token
        )
    # All tokens except two, the label and PAD.
    other_token = smoothing / (vocabulary_size - 2)
    return TargetDistribution(other_token=other_token, label=1 - smoothing, pad=0.0)
