"""Attention over packed sentences of some tens of tokens, by kernels in Triton.

torch's flash attention computes 128 positions of 128 others at once; for sentences of 30 most of
that is thrown away. These kernels compute the same (Dao 2023, algorithms 1 and 2) in small tiles: a
program computes _TILE positions of one sentence and one head. It reads the sentence's keys tile by
tile and keeps, for each query, the highest score so far and the sum of the exponentials less it
("online softmax"). Scores are kept as powers of 2, which GPUs compute faster than powers of e. Sums
are in float32.

Dimensions in shapes: `rows` are the rows of queries (the positions of all sentences), `key_rows`
the rows of keys and values.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# The positions that a program computes, and the warps of 32 threads that run it.
_TILE = 32
_WARPS = 2
_LOG2_E = tl.constexpr(math.log2(math.e))


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
    """Compute the attention of queries to the keys and values of their own sentence.

    Args:
        query: Queries, (rows, heads, head_dim); head_dim is a power of two, at least 16.
        key: Keys, (key_rows, heads, head_dim).
        value: Values, (key_rows, heads, head_dim).
        offsets: The row where each sentence of the queries begins, and the number of rows at the
            end, (sentences + 1,). No sentence is empty.
        key_offsets: The same for keys and values, with the number of their rows at the end,
            (sentences + 1,).
        longest: A bound of the lengths of all sentences.
        causal: Whether no position sees a later one.

    Returns:
        The weighted sums of the values, (rows, heads, head_dim), and the logarithm to base 2 of
        each softmax's denominator, (heads, rows), which the gradients need.
    """
    (query,) = _equally_strided(query)
    key, value = _equally_strided(key, value)
    rows, heads, size = query.shape
    mixed, log_sums = _empty_outputs(query)
    _forward[_grid(offsets, longest, heads)](
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
    """Tell torch.compile the shapes of the results."""
    return _empty_outputs(query)


def _empty_outputs(query: Tensor) -> tuple[Tensor, Tensor]:
    """Return uninitialized results of `packed_attention`: weighted sums and log sums."""
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
    """Compute the gradients by query, key and value.

    Args:
        gradient: The gradient of `mixed`, (rows, heads, head_dim).
        query: See `packed_attention`, as the arguments after it.
        key: Keys.
        value: Values.
        mixed: The first result of `packed_attention`.
        log_sums: Its second result.
        offsets: Where the queries' sentences begin.
        key_offsets: Where the keys' sentences begin.
        longest: A bound of their lengths.
        causal: Whether no position sees a later one.

    Returns:
        The gradients, in the shapes of query, key and value.
    """
    (query,) = _equally_strided(query)
    key, value = _equally_strided(key, value)
    rows, heads, size = query.shape
    gradients = _empty_gradients(query, key, value)
    query_gradient, key_gradient, value_gradient = gradients
    _backward[_grid(offsets, longest, heads)](
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
    """Tell torch.compile the shapes of the gradients."""
    return _empty_gradients(query, key, value)


def _empty_gradients(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the uninitialized results of `_gradients`."""
    return (
        torch.empty_like(query, memory_format=torch.contiguous_format),
        torch.empty_like(key, memory_format=torch.contiguous_format),
        torch.empty_like(value, memory_format=torch.contiguous_format),
    )


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Keep what the gradients need: autograd calls it after `packed_attention`."""
    query, key, value, offsets, key_offsets, longest, causal = inputs
    mixed, log_sums = output
    ctx.longest = longest
    ctx.causal = causal
    ctx.save_for_backward(query, key, value, mixed, log_sums, offsets, key_offsets)


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of `packed_attention`'s inputs; only the first three have one."""
    query_gradient, key_gradient, value_gradient = _gradients(
        gradient, *ctx.saved_tensors, ctx.longest, ctx.causal
    )
    return query_gradient, key_gradient, value_gradient, None, None, None, None


packed_attention.register_autograd(_differentiate, setup_context=_save_for_backward)


def _equally_strided(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors in one memory format; copies them if their formats differ.

    The tensors have the shape (rows, heads, head_dim). In the format, their heads lie side
    by side and their rows are equally far apart, so that the kernels need one stride for all of
    them.
    """
    head_size = tensors[0].size(2)
    strides = {x.stride() for x in tensors}
    if len(strides) == 1:
        _, head_stride, element_stride = strides.pop()
        if (head_stride, element_stride) == (head_size, 1):
            return tensors
    return tuple(x.contiguous() for x in tensors)


def _grid(offsets: Tensor, longest: int, heads: int) -> tuple[int, int, int]:
    """Return the number of programs: sentences, tiles of the longest sentence, heads.

    Programs of tiles beyond the end of a shorter sentence end at once.
    """
    tiles = (longest + _TILE - 1) // _TILE
    return len(offsets) - 1, tiles, heads


# Arguments of the kernels; tensors are pointers to their first element:
#
# query, key, value, mixed, log_sums, offsets, key_offsets: as in `packed_attention`
# gradient, query_gradient, key_gradient, value_gradient: as in `_gradients`
# query_stride, key_stride: elements from one row to the next, of queries and of keys and values
# rows, heads: the numbers of query rows and of heads
# scale: 1 / sqrt(head_dim)
# causal: whether no position sees a later one
# size: head_dim
# tile: _TILE
#
# Rows of a sentence are from `first` up to `end`, which is not included; `key_first` and `key_end`
# are those of its keys. Triton compiles a subset of Python: functions have no keyword arguments,
# and no early returns.


@triton.jit  # type: ignore[untyped-decorator]
def _forward(  # type: ignore[no-untyped-def]
    query,
    key,
    value,
    mixed,
    log_sums,
    offsets,
    key_offsets,
    query_stride,
    key_stride,
    rows,
    heads,
    scale,
    causal: tl.constexpr,
    size: tl.constexpr,
    tile: tl.constexpr,
):
    """Compute `packed_attention` for a tile of queries of one sentence and one head."""
    sentence = tl.program_id(0)
    head = tl.program_id(2)
    first = tl.load(offsets + sentence)
    end = tl.load(offsets + sentence + 1)
    key_first = tl.load(key_offsets + sentence)
    key_end = tl.load(key_offsets + sentence + 1)
    position = tl.program_id(1) * tile
    start = first + position
    # With it, exp2 of a score is e to the power of the scaled product.
    base_2_scale = scale * _LOG2_E
    head_offset = head * size
    stride = heads * size
    if start < end:
        query_rows = start + tl.arange(0, tile)
        q = _load(query + head_offset, query_rows, end, query_stride, size)
        highest = tl.full([tile], -float("inf"), tl.float32)
        denominator = tl.zeros([tile], tl.float32)
        result = tl.zeros([tile, size], tl.float32)
        visible_end = key_end
        if causal:
            visible_end = tl.minimum(key_end, key_first + position + tile)
        for key_start in range(key_first, visible_end, tile):
            key_rows = key_start + tl.arange(0, tile)
            k = _load(key + head_offset, key_rows, key_end, key_stride, size)
            v = _load(value + head_offset, key_rows, key_end, key_stride, size)
            is_visible = (key_rows < key_end)[None, :]
            if causal:
                key_positions = (key_rows - key_first)[None, :]
                query_positions = (query_rows - first)[:, None]
                is_visible = is_visible & (key_positions <= query_positions)
            scores = tl.where(is_visible, tl.dot(q, tl.trans(k)) * base_2_scale, -float("inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            # Sums so far are relative to `highest`; this makes them relative to `higher`.
            correction = tl.exp2(highest - higher)
            denominator = denominator * correction + tl.sum(weights, 1)
            result = result * correction[:, None] + tl.dot(weights.to(v.dtype), v)
            highest = higher
        result = result / denominator[:, None]
        _store(mixed + head_offset, result, query_rows, end, stride, size)
        log_sum_pointers = log_sums + head * rows + query_rows
        tl.store(log_sum_pointers, highest + tl.log2(denominator), mask=query_rows < end)


@triton.jit  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]
    query,
    key,
    value,
    mixed,
    gradient,
    log_sums,
    query_gradient,
    key_gradient,
    value_gradient,
    offsets,
    key_offsets,
    query_stride,
    key_stride,
    rows,
    heads,
    scale,
    causal: tl.constexpr,
    size: tl.constexpr,
    tile: tl.constexpr,
):
    """Compute the gradients by a tile of keys and values, then by as many queries."""
    sentence = tl.program_id(0)
    head = tl.program_id(2)
    first = tl.load(offsets + sentence)
    end = tl.load(offsets + sentence + 1)
    key_first = tl.load(key_offsets + sentence)
    key_end = tl.load(key_offsets + sentence + 1)
    position = tl.program_id(1) * tile
    head_offset = head * size
    stride = heads * size
    query = query + head_offset
    key = key + head_offset
    value = value + head_offset
    mixed = mixed + head_offset
    gradient = gradient + head_offset
    log_sums = log_sums + head * rows
    query_gradient = query_gradient + head_offset
    key_gradient = key_gradient + head_offset
    value_gradient = value_gradient + head_offset
    # fmt: off
    if key_first + position < key_end:
        _key_value_gradients(
            query, key, value, mixed, gradient, log_sums,
            key_gradient, value_gradient,
            first, end, key_first, key_end, position,
            query_stride, key_stride, stride, scale, causal, size, tile,
        )
    if first + position < end:
        _query_gradients(
            query, key, value, mixed, gradient, log_sums, query_gradient,
            first, end, key_first, key_end, position,
            query_stride, key_stride, stride, scale, causal, size, tile,
        )
    # fmt: on


@triton.jit  # type: ignore[untyped-decorator]
def _key_value_gradients(  # type: ignore[no-untyped-def]
    query,
    key,
    value,
    mixed,
    gradient,
    log_sums,
    key_gradient,
    value_gradient,
    first,
    end,
    key_first,
    key_end,
    position,
    query_stride,
    key_stride,
    stride,
    scale,
    causal: tl.constexpr,
    size: tl.constexpr,
    tile: tl.constexpr,
):
    """Compute and store the gradients by the keys and values from `position` on, of one tile."""
    base_2_scale = scale * _LOG2_E
    key_rows = key_first + position + tl.arange(0, tile)
    k = _load(key, key_rows, key_end, key_stride, size)
    v = _load(value, key_rows, key_end, key_stride, size)
    by_keys = tl.zeros([tile, size], tl.float32)
    by_values = tl.zeros([tile, size], tl.float32)
    first_query = first
    if causal:
        first_query = first + position  # Earlier queries do not see these keys.
    for start in range(first_query, end, tile):
        query_rows = start + tl.arange(0, tile)
        q = _load(query, query_rows, end, query_stride, size)
        g = _load(gradient, query_rows, end, stride, size)
        o = _load(mixed, query_rows, end, stride, size)
        log_sum = tl.load(log_sums + query_rows, mask=query_rows < end, other=0.0)
        is_visible = (key_rows < key_end)[:, None] & (query_rows < end)[None, :]
        if causal:
            key_positions = (key_rows - key_first)[:, None]
            query_positions = (query_rows - first)[None, :]
            is_visible = is_visible & (key_positions <= query_positions)
        scores = tl.dot(k, tl.trans(q)) * base_2_scale
        weights = tl.where(is_visible, tl.exp2(scores - log_sum[None, :]), 0.0)
        by_values += tl.dot(weights.to(g.dtype), g)
        # The softmax's gradient is the weights times (gradient by the weights less its mean).
        mean = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)
        by_scores = weights * (tl.dot(v, tl.trans(g)) - mean[None, :])
        by_keys += tl.dot(by_scores.to(q.dtype), q)
    _store(key_gradient, by_keys * scale, key_rows, key_end, stride, size)
    _store(value_gradient, by_values, key_rows, key_end, stride, size)


@triton.jit  # type: ignore[untyped-decorator]
def _query_gradients(  # type: ignore[no-untyped-def]
    query,
    key,
    value,
    mixed,
    gradient,
    log_sums,
    query_gradient,
    first,
    end,
    key_first,
    key_end,
    position,
    query_stride,
    key_stride,
    stride,
    scale,
    causal: tl.constexpr,
    size: tl.constexpr,
    tile: tl.constexpr,
):
    """Compute and store the gradients by the queries from `position` on, of one tile."""
    base_2_scale = scale * _LOG2_E
    query_rows = first + position + tl.arange(0, tile)
    q = _load(query, query_rows, end, query_stride, size)
    g = _load(gradient, query_rows, end, stride, size)
    o = _load(mixed, query_rows, end, stride, size)
    log_sum = tl.load(log_sums + query_rows, mask=query_rows < end, other=0.0)
    # The softmax's gradient is the weights times (gradient by the weights less its mean).
    mean = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)
    by_queries = tl.zeros([tile, size], tl.float32)
    visible_end = key_end
    if causal:
        visible_end = tl.minimum(key_end, key_first + position + tile)
    for key_start in range(key_first, visible_end, tile):
        key_rows = key_start + tl.arange(0, tile)
        k = _load(key, key_rows, key_end, key_stride, size)
        v = _load(value, key_rows, key_end, key_stride, size)
        is_visible = (key_rows < key_end)[None, :]
        if causal:
            key_positions = (key_rows - key_first)[None, :]
            query_positions = (query_rows - first)[:, None]
            is_visible = is_visible & (key_positions <= query_positions)
        scores = tl.dot(q, tl.trans(k)) * base_2_scale
        weights = tl.where(is_visible, tl.exp2(scores - log_sum[:, None]), 0.0)
        by_scores = weights * (tl.dot(g, tl.trans(v)) - mean[:, None])
        by_queries += tl.dot(by_scores.to(k.dtype), k)
    _store(query_gradient, by_queries * scale, query_rows, end, stride, size)


@triton.jit  # type: ignore[untyped-decorator]
def _load(matrix, rows, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """Return some rows of a matrix with `size` columns, as a tile; 0 from row `end` on."""
    elements = matrix + rows[:, None] * stride + tl.arange(0, size)[None, :]
    return tl.load(elements, mask=(rows < end)[:, None], other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _store(matrix, tile, rows, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write a tile to some rows of a matrix with `size` columns; nothing from row `end` on."""
    elements = matrix + rows[:, None] * stride + tl.arange(0, size)[None, :]
    tl.store(elements, tile.to(matrix.dtype.element_ty), mask=(rows < end)[:, None])
