"""How the tokens of a batch lie in the rows (R, D) that the model's products take.

`PaddedLayout`: sentence after sentence, filled up with padding to one length, on every device.
`PackedLayout`: sentence after sentence without padding between them, for GPUs; attention then reads
the sentences' bounds instead of a mask: packed_attention.py, or torch's flash attention for long
sentences.
"""

import os
import sysconfig
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import NamedTuple, TypeAlias, cast

import torch
from torch import Tensor
from torch.nn import functional

from bleuprint.config.system import Model
from bleuprint.model.linear import Size, pad_rows, unpad_rows

_KERNEL = "torch.nn.attention.varlen"
# What flash attention takes: the least compute capability of a GPU, and the size of a head.
_CAPABILITY, _HEAD, _LARGEST_HEAD = (8, 0), 8, 256
# What our own kernels take; of longer sentences flash attention wastes little.
_SHORT_HEADS, _SHORT = (16, 32, 64, 128), 256

# Queries, keys and values, their heads split by the layout.
Heads: TypeAlias = tuple[Tensor, Tensor, Tensor]


class PaddedLayout(NamedTuple):
    """`size`: sentences B and positions T; `mask` (B, 1, 1, T) is False at padding, if any.

    `fill`: rows are filled up to few numbers of them (`pad_rows`), which compiled layers do not
    need, and other kernels than oneDNN's do not either.
    """

    size: Size
    mask: Tensor | None = None
    fill: bool = True

    def rows(self, x: Tensor) -> Tensor:
        """(B, T, D) as (R, D)."""
        return pad_rows(x) if self.fill else x.flatten(0, 1)

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """(R, H x K) as (B, H, T, K)."""
        return unpad_rows(rows, self.size).view(*self.size, heads, -1).transpose(1, 2)

    def attend(self, heads: Heads, keys: "Layout", causal: bool, dropout: float) -> Tensor:
        """Attention (R, H x d_v) of queries to keys and values, which have the layout `keys`."""
        assert isinstance(keys, PaddedLayout)
        query, key, value = heads
        dtype = query.dtype
        if dtype.itemsize == 2 and query.device.type == "cpu":
            # torch's kernel for CPUs takes six times as long for the gradient in bfloat16
            query, key, value = query.float(), key.float(), value.float()
        mixed = functional.scaled_dot_product_attention(
            query, key, value, keys.mask, dropout, is_causal=causal
        )
        return self.rows(mixed.transpose(1, 2).flatten(2).to(dtype))


class PackedLayout(NamedTuple):
    """`offsets` (B + 1,), int32: the row where each sentence begins, and R; `longest`: a bound."""

    offsets: Tensor
    longest: int

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """(R, H x K) as (R, H, K)."""
        return rows.view(rows.size(0), heads, -1)

    def attend(self, heads: Heads, keys: "Layout", causal: bool, dropout: float) -> Tensor:
        """Attention (R, H x d_v) as of `PaddedLayout`; the kernel has no dropout."""
        assert isinstance(keys, PackedLayout) and not dropout
        bounds = self.offsets, keys.offsets, self.longest, keys.longest
        attend = _KERNELS[heads[0].device.type]
        return attend(*heads, *bounds, causal).flatten(1)


Layout: TypeAlias = PaddedLayout | PackedLayout


def has_triton() -> bool:
    """Whether Triton is here with what it needs: a C compiler, and Python's headers."""
    return (
        find_spec("triton") is not None
        and any(map(which, (os.environ.get("CC", "cc"), "gcc", "clang")))
        and Path(sysconfig.get_path("include"), "Python.h").exists()
    )


_HAS_TRITON = has_triton()  # found once, since the compiler does not look into it


def can_pack(model: Model, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether torch has a kernel for packed sentences of such a model in training.

    It needs Ampere or newer and activations of 16 bits, and has neither dropout of attention
    weights nor rotary positions.
    """
    return (
        device.type == "cuda"
        and find_spec(_KERNEL) is not None
        and torch.cuda.get_device_capability(device) >= _CAPABILITY
        and dtype in (torch.bfloat16, torch.float16)
        and model.d_k == model.d_v <= _LARGEST_HEAD
        and model.d_k % _HEAD == 0
        and not model.dropout.attention
        and model.positional_encoding != "rotary"
    )


def _attend_on_gpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    key_offsets: Tensor,
    longest: int,
    longest_key: int,
    causal: bool,
) -> Tensor:
    """Attention over packed sentences, by our kernels for short ones, or else by torch's."""
    bounds = offsets, key_offsets
    if _HAS_TRITON and query.size(-1) in _SHORT_HEADS and max(longest, longest_key) <= _SHORT:
        from bleuprint.model.packed_attention import packed_attention  # loads Triton

        bound = max(longest, longest_key)
        return cast(Tensor, packed_attention(query, key, value, *bounds, bound, causal)[0])
    from torch.nn.attention.varlen import varlen_attn  # loads torch's compiler: a second

    window = (-1, 0) if causal else (-1, -1)
    mixed = varlen_attn(query, key, value, *bounds, longest, longest_key, window_size=window)
    return cast(Tensor, mixed)


def _attend_one_by_one(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor,
    key_starts: Tensor,
    longest: int,  # noqa: ARG001 (the kernel's arguments)
    longest_key: int,  # noqa: ARG001
    causal: bool,
) -> Tensor:
    """What the kernel computes, of queries (R, H, K), sentence by sentence: for tests on CPUs."""
    mixed = []
    for rows, others in zip(_slices(starts), _slices(key_starts), strict=True):
        q, k, v = (x.transpose(0, 1) for x in (query[rows], key[others], value[others]))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        mixed.append(attended.transpose(0, 1))
    return torch.cat(mixed)


def _slices(starts: Tensor) -> list[slice]:
    return [slice(*bounds) for bounds in pairwise(starts.tolist())]


_KERNELS: dict[str, Callable[..., Tensor]] = {"cpu": _attend_one_by_one, "cuda": _attend_on_gpu}
