"""Attention over packed sentences: sentences one after the other, without padding between them.

`attend_packed` calls the kernel that backends.py chooses.

Dimensions in shapes: `rows` are the rows of queries (the positions of all sentences), `key_rows`
the rows of keys and values.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias, cast

import torch
from torch import Tensor
from torch.nn import functional

from bleuprint.model.backends import PackedKernel, packed_kernel

# A function with the arguments and the result of `attend_packed`.
Kernel: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int, int, bool], Tensor]


def attend_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    max_query_length: int,
    max_key_length: int,
    is_causal: bool,
) -> Tensor:
    """Compute attention over packed sentences, by the kernel that suits the device.

    Packed sentences are stored one after the other, without padding. A query attends to the keys of
    its own sentence.

    Args:
        query: The queries of all sentences, (rows, heads, key_dim).
        key: The keys of all sentences, (key rows, heads, key_dim).
        value: The values of all sentences, (key rows, heads, key_dim).
        query_offsets: The row where each sentence of the queries begins, and at the end the number
            of rows, (sentences + 1,): [0, 3, 5] for sentences of 3 and 2 tokens.
        key_offsets: The same for the keys, (sentences + 1,).
        max_query_length: A number of queries that no sentence exceeds.
        max_key_length: A number of keys that no sentence exceeds.
        is_causal: Whether no position attends to a later one.

    Returns:
        The weighted sums of the values, (rows, heads, key_dim).
    """
    max_length = max(max_query_length, max_key_length)
    kernel = packed_kernel(query.device.type, query.size(-1), max_length)
    attend = _KERNELS[kernel]
    return attend(
        query,
        key,
        value,
        query_offsets,
        key_offsets,
        max_query_length,
        max_key_length,
        is_causal,
    )


def _attend_by_triton(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    max_query_length: int,
    max_key_length: int,
    is_causal: bool,
) -> Tensor:
    """Compute attention over packed sentences by our Triton kernels, made for short sentences.

    Arguments and result are those of `attend_packed`.
    """
    from bleuprint.model.packed_attention import packed_attention  # Loads Triton.

    max_length = max(max_query_length, max_key_length)
    weighted_sums, _ = packed_attention(
        query, key, value, query_offsets, key_offsets, max_length, is_causal
    )
    return cast(Tensor, weighted_sums)


def _attend_by_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    max_query_length: int,
    max_key_length: int,
    is_causal: bool,
) -> Tensor:
    """Compute attention over packed sentences by torch's flash attention.

    Arguments and result are those of `attend_packed`.
    """
    # Loads torch's compiler, which takes a second.
    from torch.nn.attention.varlen import varlen_attn

    # How many positions before and after its own position a query attends to; -1 means all.
    window = (-1, 0) if is_causal else (-1, -1)
    weighted_sums = varlen_attn(
        query,
        key,
        value,
        query_offsets,
        key_offsets,
        max_query_length,
        max_key_length,
        window_size=window,
    )
    return cast(Tensor, weighted_sums)


def _attend_by_sentence(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_offsets: Tensor,
    key_offsets: Tensor,
    max_query_length: int,  # noqa: ARG001 (All kernels have these arguments.)
    max_key_length: int,  # noqa: ARG001
    is_causal: bool,
) -> Tensor:
    """Compute attention over packed sentences one sentence at a time, for tests on CPUs.

    This is the simple form with which the fast kernels are compared. Arguments and result are those
    of `attend_packed`.
    """
    sums_of_sentences = []
    query_rows = _sentence_rows(query_offsets)
    key_rows = _sentence_rows(key_offsets)
    for rows, rows_of_keys in zip(query_rows, key_rows, strict=True):
        # torch's attention expects (heads, positions, key_dim).
        weighted_sums = functional.scaled_dot_product_attention(
            query[rows].transpose(0, 1),
            key[rows_of_keys].transpose(0, 1),
            value[rows_of_keys].transpose(0, 1),
            is_causal=is_causal,
        )
        sums_of_sentences.append(weighted_sums.transpose(0, 1))
    return torch.cat(sums_of_sentences)


def _sentence_rows(offsets: Tensor) -> list[slice]:
    """Return the rows of each sentence as slices: [0, 3, 5] gives the rows 0 to 2, and 3 to 4.

    Args:
        offsets: The row where each sentence begins, and the number of rows at the end,
            (sentences + 1,).
    """
    return [slice(start, end) for start, end in pairwise(offsets.tolist())]


_KERNELS: dict[PackedKernel, Kernel] = {
    "by sentence": _attend_by_sentence,
    "triton": _attend_by_triton,
    "flash": _attend_by_flash,
}
