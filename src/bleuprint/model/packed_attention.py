"""Attention over packed sentences of some tens of tokens, as an operator of torch.

torch's flash attention computes 128 positions of 128 others at once; for sentences of 30 most of
that is thrown away. The Triton kernels in packed_attention_kernels.py compute the same in tiles of
_TILE positions.
"""

import math
from typing import Any

import torch
from torch import Tensor

from bleuprint.model.packed_attention_kernels import attention_backward, attention_forward
from bleuprint.runtime.rounding import divide_rounding_up

# The positions that a program computes, and the warps of 32 threads that run it.
_TILE = 32
_WARPS = 2


@torch.library.custom_op("bleuprint::packed_attention", mutates_args=())
def packed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    key_offsets: Tensor,
    longest: int,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """Compute attention over packed sentences by a Triton kernel.

    Packed sentences are stored one after the other, without padding. A query attends to the keys of
    its own sentence. This is an operator of torch, so that torch.compile can call it.

    Args:
        query: The queries of all sentences, (rows, heads, key_dim). key_dim is a power of two, at
            least 16.
        key: The keys of all sentences, (key rows, heads, key_dim).
        value: The values of all sentences, (key rows, heads, key_dim).
        offsets: The row where each sentence of the queries begins, and at the end the number of
            rows, (sentences + 1,): [0, 3, 5] for sentences of 3 and 2 tokens. None is empty.
        key_offsets: The same for the keys, (sentences + 1,).
        longest: A number of tokens that no sentence exceeds.
        causal: Whether no position attends to a later one.

    Returns:
        The weighted sums of the values, (rows, heads, key_dim); and the logarithm to base 2 of each
        softmax's denominator, (heads, rows), which the gradients need.
    """
    (query,) = _equally_strided(query)
    key, value = _equally_strided(key, value)
    rows, heads, size = query.shape
    # The kernel writes the weighted sums into `mixed`.
    mixed, log_sums = _empty_outputs(query)
    attention_forward[_grid(offsets, longest, heads)](
        query,
        key,
        value,
        mixed,
        log_sums,
        offsets,
        key_offsets,
        query.stride(0),
        key.stride(0),
        rows,
        heads,
        1 / math.sqrt(size),
        causal,
        size,
        _TILE,
        num_warps=_WARPS,
    )
    return mixed, log_sums


@packed_attention.register_fake
def _(query: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    """Tell torch.compile the shapes and types of what `packed_attention` returns."""
    return _empty_outputs(query)


def _empty_outputs(query: Tensor) -> tuple[Tensor, Tensor]:
    """Allocate the results of attention, for a kernel to fill.

    Args:
        query: The queries, (rows, heads, key_dim). Weighted sums have the same shape and type.

    Returns:
        Tensors for the weighted sums, (rows, heads, key_dim), and for the logarithms of the
        softmax's denominators, (heads, rows).
    """
    rows, heads, _ = query.shape
    mixed = torch.empty_like(query, memory_format=torch.contiguous_format)
    log_sums = query.new_empty((heads, rows), dtype=torch.float32)
    return mixed, log_sums


@torch.library.custom_op("bleuprint::packed_attention_backward", mutates_args=())
def _gradients(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mixed: Tensor,
    log_sums: Tensor,
    offsets: Tensor,
    key_offsets: Tensor,
    longest: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of attention over packed sentences by a Triton kernel.

    Args:
        gradient: The gradient of the weighted sums, (rows, heads, key_dim).
        query: The queries, (rows, heads, key_dim).
        key: The keys, (key rows, heads, key_dim).
        value: The values, (key rows, heads, key_dim).
        mixed: The weighted sums that `packed_attention` returned, (rows, heads, key_dim).
        log_sums: The logarithms that `packed_attention` returned, (heads, rows).
        offsets: The row where each sentence of the queries begins, (sentences + 1,).
        key_offsets: The row where each sentence of the keys begins, (sentences + 1,).
        longest: A number of tokens that no sentence exceeds.
        causal: Whether no position attends to a later one.

    Returns:
        The gradients of query, key and value.
    """
    (query,) = _equally_strided(query)
    key, value = _equally_strided(key, value)
    rows, heads, size = query.shape
    gradients = _empty_gradients(query, key, value)
    query_gradient, key_gradient, value_gradient = gradients
    attention_backward[_grid(offsets, longest, heads)](
        query,
        key,
        value,
        mixed,
        gradient.contiguous(),
        log_sums,
        query_gradient,
        key_gradient,
        value_gradient,
        offsets,
        key_offsets,
        query.stride(0),
        key.stride(0),
        rows,
        heads,
        1 / math.sqrt(size),
        causal,
        size,
        _TILE,
        num_warps=_WARPS,
    )
    return gradients


@_gradients.register_fake
def _(
    gradient: Tensor,  # noqa: ARG001 (The operator has these arguments.)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *_: object,
) -> tuple[Tensor, Tensor, Tensor]:
    """Tell torch.compile the shapes and types of the gradients."""
    return _empty_gradients(query, key, value)


def _empty_gradients(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Allocate the gradients of query, key and value, which a kernel fills."""
    return (
        torch.empty_like(query, memory_format=torch.contiguous_format),
        torch.empty_like(key, memory_format=torch.contiguous_format),
        torch.empty_like(value, memory_format=torch.contiguous_format),
    )


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Save what the gradients of `packed_attention` need; autograd calls this after it.

    Args:
        ctx: The object in which autograd keeps it until the backward pass.
        inputs: The arguments of `packed_attention`.
        output: The results of `packed_attention`.
    """
    query, key, value, offsets, key_offsets, longest, causal = inputs
    mixed, log_sums = output
    ctx.longest = longest
    ctx.causal = causal
    ctx.save_for_backward(query, key, value, mixed, log_sums, offsets, key_offsets)


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of the arguments of `packed_attention`, for autograd.

    Args:
        ctx: What `_save_for_backward` saved.
        gradient: The gradient of the weighted sums, (rows, heads, key_dim).
        _: The gradient of the second result, the logarithms, which no loss depends on.

    Returns:
        The gradients of query, key and value; None for the four arguments that are not trained.
    """
    query_gradient, key_gradient, value_gradient = _gradients(
        gradient, *ctx.saved_tensors, ctx.longest, ctx.causal
    )
    return query_gradient, key_gradient, value_gradient, None, None, None, None


packed_attention.register_autograd(_differentiate, setup_context=_save_for_backward)


def _equally_strided(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors with the same memory layout, so that a kernel needs one stride for all.

    In each tensor, the heads of a row must follow each other in memory; and the rows of all tensors
    must be equally far apart. Otherwise the tensors are copied.

    Args:
        tensors: Tensors of the shape (rows, heads, key_dim).
    """
    head_size = tensors[0].size(2)
    strides = {x.stride() for x in tensors}
    if len(strides) == 1:
        _row_stride, head_stride, element_stride = strides.pop()
        are_heads_side_by_side = head_stride == head_size and element_stride == 1
        if are_heads_side_by_side:
            return tensors
    return tuple(x.contiguous() for x in tensors)


def _grid(offsets: Tensor, longest: int, heads: int) -> tuple[int, int, int]:
    """Return how many programs of a kernel to start, in three dimensions.

    For each sentence and each head, a program computes 32 positions (a tile). All sentences get as
    many programs as the longest one needs; the programs behind the end of a shorter sentence end at
    once.

    Args:
        offsets: The row where each sentence begins, and the number of rows, (sentences + 1,).
        longest: A number of tokens that no sentence exceeds.
        heads: The number of heads.
    """
    tiles = divide_rounding_up(longest, _TILE)
    sentences = len(offsets) - 1
    return sentences, tiles, heads
