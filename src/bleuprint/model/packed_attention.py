"""Attention over packed sentences of some tens of tokens, by kernels in Triton.

torch's flash attention computes 128 positions of 128 others at once; for sentences of 30 most of
that is thrown away. These kernels compute the same (Dao 2023, algorithms 1 and 2) in small tiles: a
program computes some positions of one sentence and one head. Statistics are in float32.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

# Positions of a tile, and its warps.
_TILE, _WARPS = 32, 2
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
    """The attention (R, H, K) of queries (R, H, K) to keys and values (S, H, K) of their sentence.

    K is a power of two from 16 on. `offsets` and `key_offsets` (B + 1,): the row where each
    sentence begins, and the number of rows; no sentence is empty, none longer than `longest`.
    Also returns the logarithm to base 2 of each softmax's denominator (H, R).
    """
    (query,), (key, value) = _equally_strided(query), _equally_strided(key, value)
    rows, heads, size = query.shape
    mixed, sums = _results(query)
    _forward[_grid(offsets, longest, heads)](
        *(query, key, value, mixed, sums, offsets, key_offsets),
        *(query.stride(0), key.stride(0), rows, heads),
        *(1 / math.sqrt(size), causal, size, _TILE),
        num_warps=_WARPS,
    )
    return mixed, sums


@packed_attention.register_fake
def _(query: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    return _results(query)


def _results(query: Tensor) -> tuple[Tensor, Tensor]:
    rows, heads, _ = query.shape
    mixed = torch.empty_like(query, memory_format=torch.contiguous_format)
    return mixed, query.new_empty((heads, rows), dtype=torch.float32)


@torch.library.custom_op("bleuprint::packed_attention_backward", mutates_args=())
def _gradients(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mixed: Tensor,
    sums: Tensor,
    offsets: Tensor,
    key_offsets: Tensor,
    longest: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by query, key and value; `mixed` and `sums`: what was returned for them."""
    (query,), (key, value) = _equally_strided(query), _equally_strided(key, value)
    rows, heads, size = query.shape
    found = _empty(query, key, value)
    _backward[_grid(offsets, longest, heads)](
        *(query, key, value, mixed, gradient.contiguous(), sums, *found, offsets, key_offsets),
        *(query.stride(0), key.stride(0), rows, heads),
        *(1 / math.sqrt(size), causal, size, _TILE),
        num_warps=_WARPS,
    )
    return found


@_gradients.register_fake
def _(
    gradient: Tensor,  # noqa: ARG001 (the operator's arguments)
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *_: object,
) -> tuple[Tensor, Tensor, Tensor]:
    return _empty(query, key, value)


def _empty(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    form = torch.contiguous_format
    query, key, value = (torch.empty_like(x, memory_format=form) for x in (query, key, value))
    return query, key, value


def _setup(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    query, key, value, offsets, key_offsets, ctx.longest, ctx.causal = inputs
    ctx.save_for_backward(query, key, value, *output, offsets, key_offsets)


def _differentiate(ctx, gradient, _):  # type: ignore[no-untyped-def]
    found = _gradients(gradient, *ctx.saved_tensors, ctx.longest, ctx.causal)
    return (*found, None, None, None, None)


packed_attention.register_autograd(_differentiate, setup_context=_setup)


def _equally_strided(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors (R, H, K) with heads side by side, and rows equally far apart."""
    steps = {x.stride() for x in tensors}
    if len(steps) == 1 and steps.pop()[1:] == (tensors[0].size(2), 1):
        return tensors
    return tuple(x.contiguous() for x in tensors)


def _grid(offsets: Tensor, longest: int, heads: int) -> tuple[int, int, int]:
    """The programs: those beyond the end of a shorter sentence end at once."""
    return len(offsets) - 1, -(-longest // _TILE), heads


@triton.jit  # type: ignore[untyped-decorator]
def _forward(  # type: ignore[no-untyped-def]
    query,
    key,
    value,
    mixed,
    sums,
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
    sentence, head = tl.program_id(0), tl.program_id(2)
    first, end = tl.load(offsets + sentence), tl.load(offsets + sentence + 1)
    key_first, key_end = tl.load(key_offsets + sentence), tl.load(key_offsets + sentence + 1)
    position = tl.program_id(1) * tile
    start = first + position
    to_base_2, of_head, stride = scale * _LOG2_E, head * size, heads * size
    if start < end:
        at = start + tl.arange(0, tile)
        q = _rows(query + of_head, at, end, query_stride, size)
        highest = tl.full([tile], -float("inf"), tl.float32)
        denominator = tl.zeros([tile], tl.float32)
        result = tl.zeros([tile, size], tl.float32)
        seen = key_end
        if causal:
            seen = tl.minimum(key_end, key_first + position + tile)
        for other in range(key_first, seen, tile):
            others = other + tl.arange(0, tile)
            k = _rows(key + of_head, others, key_end, key_stride, size)
            v = _rows(value + of_head, others, key_end, key_stride, size)
            visible = (others < key_end)[None, :]
            if causal:
                visible = visible & ((others - key_first)[None, :] <= (at - first)[:, None])
            scores = tl.where(visible, tl.dot(q, tl.trans(k)) * to_base_2, -float("inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            before = tl.exp2(highest - higher)
            denominator = denominator * before + tl.sum(weights, 1)
            result = result * before[:, None] + tl.dot(weights.to(v.dtype), v)
            highest = higher
        result = result / denominator[:, None]
        _store(mixed + of_head, result, at, end, stride, size)
        tl.store(sums + head * rows + at, highest + tl.log2(denominator), mask=at < end)


@triton.jit  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]  # noqa: PLR0915
    query,
    key,
    value,
    mixed,
    gradient,
    sums,
    by_query,
    by_key,
    by_value,
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
    """A program computes the gradients by some queries, and by as many keys and values."""
    sentence, head = tl.program_id(0), tl.program_id(2)
    first, end = tl.load(offsets + sentence), tl.load(offsets + sentence + 1)
    key_first, key_end = tl.load(key_offsets + sentence), tl.load(key_offsets + sentence + 1)
    position, of_head, stride = tl.program_id(1) * tile, head * size, heads * size
    query, key, value = query + of_head, key + of_head, value + of_head
    mixed, gradient, sums = mixed + of_head, gradient + of_head, sums + head * rows
    by_query, by_key, by_value = by_query + of_head, by_key + of_head, by_value + of_head
    to_base_2 = scale * _LOG2_E

    if key_first + position < key_end:
        others = key_first + position + tl.arange(0, tile)
        k = _rows(key, others, key_end, key_stride, size)
        v = _rows(value, others, key_end, key_stride, size)
        of_keys = tl.zeros([tile, size], tl.float32)
        of_values = tl.zeros([tile, size], tl.float32)
        begin = first
        if causal:
            begin = first + position
        for start in range(begin, end, tile):
            at = start + tl.arange(0, tile)
            q = _rows(query, at, end, query_stride, size)
            g = _rows(gradient, at, end, stride, size)
            o = _rows(mixed, at, end, stride, size)
            sum_ = tl.load(sums + at, mask=at < end, other=0.0)
            visible = (others < key_end)[:, None] & (at < end)[None, :]
            if causal:
                visible = visible & ((others - key_first)[:, None] <= (at - first)[None, :])
            scores = tl.dot(k, tl.trans(q)) * to_base_2
            weights = tl.where(visible, tl.exp2(scores - sum_[None, :]), 0.0)
            of_values += tl.dot(weights.to(g.dtype), g)
            product = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)
            by_score = weights * (tl.dot(v, tl.trans(g)) - product[None, :])
            of_keys += tl.dot(by_score.to(q.dtype), q)
        _store(by_key, of_keys * scale, others, key_end, stride, size)
        _store(by_value, of_values, others, key_end, stride, size)

    if first + position < end:
        at = first + position + tl.arange(0, tile)
        q = _rows(query, at, end, query_stride, size)
        g = _rows(gradient, at, end, stride, size)
        o = _rows(mixed, at, end, stride, size)
        sum_ = tl.load(sums + at, mask=at < end, other=0.0)
        product = tl.sum(o.to(tl.float32) * g.to(tl.float32), 1)
        of_queries = tl.zeros([tile, size], tl.float32)
        seen = key_end
        if causal:
            seen = tl.minimum(key_end, key_first + position + tile)
        for other in range(key_first, seen, tile):
            others = other + tl.arange(0, tile)
            k = _rows(key, others, key_end, key_stride, size)
            v = _rows(value, others, key_end, key_stride, size)
            visible = (others < key_end)[None, :]
            if causal:
                visible = visible & ((others - key_first)[None, :] <= (at - first)[:, None])
            scores = tl.dot(q, tl.trans(k)) * to_base_2
            weights = tl.where(visible, tl.exp2(scores - sum_[:, None]), 0.0)
            by_score = weights * (tl.dot(g, tl.trans(v)) - product[:, None])
            of_queries += tl.dot(by_score.to(k.dtype), k)
        _store(by_query, of_queries * scale, at, end, stride, size)


@triton.jit  # type: ignore[untyped-decorator]
def _rows(start, at, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """The rows `at` of a matrix that begins at `start`, as a tile; 0 from `end` on."""
    where = start + at[:, None] * stride + tl.arange(0, size)[None, :]
    return tl.load(where, mask=(at < end)[:, None], other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _store(start, values, at, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write a tile to the rows `at`, which `_rows` reads."""
    where = start + at[:, None] * stride + tl.arange(0, size)[None, :]
    tl.store(where, values.to(start.dtype.element_ty), mask=(at < end)[:, None])
