"""The Triton kernels of attention over packed sentences; packed_attention.py calls them.

They compute attention and its gradients in small tiles (Dao 2023, algorithms 1 and 2): a program
computes some positions of one sentence and one head. It reads the sentence's keys tile by tile and
keeps, for each query, the highest score so far and the sum of the exponentials less it ("online
softmax"). Scores are kept as powers of 2, which GPUs compute faster than powers of e. Sums are in
float32.
"""

import math

import triton
import triton.language as tl

_LOG2_E = tl.constexpr(math.log2(math.e))

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
# are those of its keys. A name that ends in `_tile` is what a program has read of a tensor: 32 rows
# of one head. Triton compiles a subset of Python: functions have no keyword arguments, and no early
# returns.


@triton.jit  # type: ignore[untyped-decorator]
def attention_forward(  # type: ignore[no-untyped-def]
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
    """Compute the attention of 32 queries (a tile) of one sentence and one head.

    The sentence's keys are read tile by tile. The highest score of all keys, which a softmax needs,
    is then not known: sums are relative to the highest so far, and corrected ("online softmax").
    """
    sentence = tl.program_id(0)
    head = tl.program_id(2)
    first = tl.load(offsets + sentence)  # The first row of the sentence's queries,
    end = tl.load(offsets + sentence + 1)  # and the row after its last one.
    key_first = tl.load(key_offsets + sentence)  # The same for its keys.
    key_end = tl.load(key_offsets + sentence + 1)
    position = tl.program_id(1) * tile  # Where the tile begins in the sentence.
    start = first + position
    # exp2 is faster than exp: exp(scale x product) is exp2(base_2_scale x product).
    base_2_scale = scale * _LOG2_E
    head_offset = head * size  # Where the head begins in a row.
    if start < end:  # Programs behind the end of a short sentence compute nothing.
        query_rows = start + tl.arange(0, tile)
        query_tile = _load(query + head_offset, query_rows, end, query_stride, size)
        highest = tl.full([tile], -float("inf"), tl.float32)
        denominator = tl.zeros([tile], tl.float32)
        result = tl.zeros([tile, size], tl.float32)
        visible_end = key_end
        if causal:  # No query of the tile sees keys behind the tile.
            visible_end = tl.minimum(key_end, key_first + position + tile)
        for key_start in range(key_first, visible_end, tile):
            key_rows = key_start + tl.arange(0, tile)
            key_tile = _load(key + head_offset, key_rows, key_end, key_stride, size)
            value_tile = _load(value + head_offset, key_rows, key_end, key_stride, size)
            is_visible = _visible_keys(query_rows, first, key_rows, key_first, key_end, causal)
            scores = tl.dot(query_tile, tl.trans(key_tile)) * base_2_scale
            scores = tl.where(is_visible, scores, -float("inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            # Sums so far are relative to `highest`; this makes them relative to `higher`.
            correction = tl.exp2(highest - higher)
            denominator = denominator * correction + tl.sum(weights, 1)
            result = result * correction[:, None] + tl.dot(weights.to(value_tile.dtype), value_tile)
            highest = higher
        result = result / denominator[:, None]
        _store(mixed + head_offset, result, query_rows, end, heads * size, size)
        log_sum = highest + tl.log2(denominator)
        tl.store(log_sums + head * rows + query_rows, log_sum, mask=query_rows < end)


@triton.jit  # type: ignore[untyped-decorator]
def attention_backward(  # type: ignore[no-untyped-def]
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
    """Compute the gradients of 32 keys and values (a tile) of one sentence and one head.

    The same program computes the gradients of the 32 queries at the same positions. Programs beyond
    the end of a short sentence compute nothing. `offsets` and `key_offsets` contain the first row
    of each sentence's queries and keys.
    """
    sentence = tl.program_id(0)
    head = tl.program_id(2)
    first = tl.load(offsets + sentence)  # The first row of the sentence's queries,
    end = tl.load(offsets + sentence + 1)  # and the row after its last one.
    key_first = tl.load(key_offsets + sentence)  # The same for its keys.
    key_end = tl.load(key_offsets + sentence + 1)
    position = tl.program_id(1) * tile  # Where the tile begins in the sentence.
    head_offset = head * size
    stride = heads * size  # Between the rows of tensors without gaps.
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
    """Compute and store the gradients of 32 keys and values (a tile) of one sentence and one head.

    They are the sums of what all queries of the sentence contribute, which are read tile by tile.
    The weights are computed again, from `log_sums`, the logarithms of the softmax's denominators.
    The sentence's queries are the rows from `first` to before `end`, its keys those from
    `key_first` to before `key_end`. The tile begins `position` rows after `key_first`.
    """
    # exp2 is faster than exp: exp(scale x product) is exp2(base_2_scale x product).
    base_2_scale = scale * _LOG2_E
    key_rows = key_first + position + tl.arange(0, tile)
    key_tile = _load(key, key_rows, key_end, key_stride, size)
    value_tile = _load(value, key_rows, key_end, key_stride, size)
    by_keys = tl.zeros([tile, size], tl.float32)
    by_values = tl.zeros([tile, size], tl.float32)
    first_query = first
    if causal:
        first_query = first + position  # Earlier queries do not see these keys.
    for start in range(first_query, end, tile):
        query_rows = start + tl.arange(0, tile)
        query_tile = _load(query, query_rows, end, query_stride, size)
        gradient_tile = _load(gradient, query_rows, end, stride, size)
        mixed_tile = _load(mixed, query_rows, end, stride, size)
        log_sum = tl.load(log_sums + query_rows, mask=query_rows < end, other=0.0)
        is_visible = (key_rows < key_end)[:, None] & (query_rows < end)[None, :]
        if causal:
            key_positions = (key_rows - key_first)[:, None]
            query_positions = (query_rows - first)[None, :]
            is_visible = is_visible & (key_positions <= query_positions)
        scores = tl.dot(key_tile, tl.trans(query_tile)) * base_2_scale
        weights = tl.where(is_visible, tl.exp2(scores - log_sum[None, :]), 0.0)
        by_values += tl.dot(weights.to(gradient_tile.dtype), gradient_tile)
        # The gradient of a softmax: weights x (gradient of the weights - its weighted mean).
        mean = tl.sum(mixed_tile.to(tl.float32) * gradient_tile.to(tl.float32), 1)
        by_scores = weights * (tl.dot(value_tile, tl.trans(gradient_tile)) - mean[None, :])
        by_keys += tl.dot(by_scores.to(query_tile.dtype), query_tile)
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
    """Compute and store the gradients of 32 queries (a tile) of one sentence and one head.

    They are the sums of what all keys of the sentence contribute, which are read tile by tile. The
    weights are computed again, from `log_sums`, the logarithms of the softmax's denominators.

    The sentence's queries are the rows from `first` to before `end`, its keys those from
    `key_first` to before `key_end`. The tile begins `position` rows after `first`. Strides are the
    distances of rows, in elements.
    """
    # exp2 is faster than exp: exp(scale x product) is exp2(base_2_scale x product).
    base_2_scale = scale * _LOG2_E
    query_rows = first + position + tl.arange(0, tile)
    query_tile = _load(query, query_rows, end, query_stride, size)
    gradient_tile = _load(gradient, query_rows, end, stride, size)
    mixed_tile = _load(mixed, query_rows, end, stride, size)
    log_sum = tl.load(log_sums + query_rows, mask=query_rows < end, other=0.0)
    # The gradient of a softmax: weights x (gradient of the weights - its weighted mean).
    mean = tl.sum(mixed_tile.to(tl.float32) * gradient_tile.to(tl.float32), 1)
    by_queries = tl.zeros([tile, size], tl.float32)
    visible_end = key_end
    if causal:  # No query of the tile sees keys behind the tile.
        visible_end = tl.minimum(key_end, key_first + position + tile)
    for key_start in range(key_first, visible_end, tile):
        key_rows = key_start + tl.arange(0, tile)
        key_tile = _load(key, key_rows, key_end, key_stride, size)
        value_tile = _load(value, key_rows, key_end, key_stride, size)
        is_visible = _visible_keys(query_rows, first, key_rows, key_first, key_end, causal)
        scores = tl.dot(query_tile, tl.trans(key_tile)) * base_2_scale
        weights = tl.where(is_visible, tl.exp2(scores - log_sum[:, None]), 0.0)
        by_scores = weights * (tl.dot(gradient_tile, tl.trans(value_tile)) - mean[:, None])
        by_queries += tl.dot(by_scores.to(key_tile.dtype), key_tile)
    _store(query_gradient, by_queries * scale, query_rows, end, stride, size)


@triton.jit  # type: ignore[untyped-decorator]
def _visible_keys(  # type: ignore[no-untyped-def]
    query_rows, first, key_rows, key_first, key_end, causal: tl.constexpr
):
    """Return which keys of a tile each query of a tile attends to, (queries, keys).

    These are the keys of the sentence, which ends before `key_end`. In causal attention, they are
    also at no later position than the query. `first` and `key_first` are the sentence's first rows.
    """
    is_visible = (key_rows < key_end)[None, :]
    if causal:
        key_positions = (key_rows - key_first)[None, :]
        query_positions = (query_rows - first)[:, None]
        is_visible = is_visible & (key_positions <= query_positions)
    return is_visible


@triton.jit  # type: ignore[untyped-decorator]
def _load(matrix, rows, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """Read a tile: some rows of a matrix with `size` columns; 0 from row `end` on.

    `matrix` points to the first element, and rows are `stride` elements apart.
    """
    elements = matrix + rows[:, None] * stride + tl.arange(0, size)[None, :]
    return tl.load(elements, mask=(rows < end)[:, None], other=0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _store(matrix, tile, rows, end, stride, size: tl.constexpr):  # type: ignore[no-untyped-def]
    """Write a tile to some rows of a matrix with `size` columns; nothing from row `end` on.

    `matrix` points to the first element, and rows are `stride` elements apart.
    """
    elements = matrix + rows[:, None] * stride + tl.arange(0, size)[None, :]
    tl.store(elements, tile.to(matrix.dtype.element_ty), mask=(rows < end)[:, None])
