"""Multi-head attention; shapes as in transformer.py."""

import math

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.layout import Layout, PaddedLayout
from bleuprint.model.linear import Linear, linear
from bleuprint.model.positions import rotate


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2); queries, keys and values are projected by one matrix."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads = settings.heads
        keys, values = settings.heads * settings.d_k, settings.heads * settings.d_v
        self.qkv_sizes = [keys, keys, values]
        self.in_proj = Linear(settings.d_model, sum(self.qkv_sizes), bias=settings.bias)
        self.out_proj = Linear(values, settings.d_model, bias=settings.bias)
        self.dropout = settings.dropout.attention
        self.rotary = settings.positional_encoding == "rotary"
        # the kernels divide by sqrt(K)
        self.query_scale = 1.0 if settings.scale_attention else math.sqrt(settings.d_k)
        # if set, `forward` and `cross` append their weights (B, H, query, key)
        self.recorded: list[Tensor] | None = None

    def forward(self, x: Tensor, layout: Layout, causal: bool = False) -> Tensor:
        """Self-attention over rows x (R, D); `causal`: no position sees a later one."""
        query, key, value = self.project_qkv(x, layout)
        self._record(query, key, layout, causal)
        return self._merge(layout.attend((query, key, value), layout, causal, self._dropout))

    def cross(
        self, x: Tensor, layout: Layout, key: Tensor, value: Tensor, memory: Layout
    ) -> Tensor:
        """Attention from x (R, D) to the result of `project_key_value`, of the layout `memory`."""
        query = layout.split_heads(self._queries(x), self.heads)
        self._record(query, key, memory, causal=False)
        return self._merge(layout.attend((query, key, value), memory, False, self._dropout))

    def step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """Self-attention of one new token for each of N hypotheses, x (N, D)."""
        query, key, value = torch.split(self.in_proj(x), self.qkv_sizes, dim=-1)
        if self.rotary:
            heads = (y.view(len(x), self.heads, 1, -1) for y in (query, key))
            query, key = (rotate(y, cache.position).flatten(1) for y in heads)
        result: Tensor = self.out_proj(cache.self_attend(layer, self._scaled(query), key, value))
        return result

    def cross_step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """Attention from x (N, D) to the sources in the cache."""
        result: Tensor = self.out_proj(cache.cross_attend(layer, self._queries(x)))
        return result

    def project_qkv(self, x: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of x (R, D), their heads split by the layout."""
        joint = torch.split(self.in_proj(x), self.qkv_sizes, dim=-1)
        query, key, value = (layout.split_heads(part, self.heads) for part in joint)
        if self.rotary:
            query, key = rotate(query, 0), rotate(key, 0)
        return self._scaled(query), key, value

    def project_key_value(self, memory: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder's output (R, D), their heads split by its layout."""
        joint = self._project(memory, slice(self.qkv_sizes[0], None))
        key, value = torch.split(joint, self.qkv_sizes[1:], dim=-1)
        return layout.split_heads(key, self.heads), layout.split_heads(value, self.heads)

    def _queries(self, x: Tensor) -> Tensor:
        """Queries (..., H x K) of x (..., D)."""
        return self._scaled(self._project(x, slice(None, self.qkv_sizes[0])))

    def _scaled(self, query: Tensor) -> Tensor:
        return query if self.query_scale == 1.0 else query * self.query_scale

    def _project(self, x: Tensor, rows: slice) -> Tensor:
        """x times some rows of in_proj."""
        weight, bias = self.in_proj.parameters_as(x.dtype)
        return linear(x, weight[rows], None if bias is None else bias[rows])

    @property
    def _dropout(self) -> float:
        return self.dropout if self.training else 0.0

    def _merge(self, mixed: Tensor) -> Tensor:
        result: Tensor = self.out_proj(mixed)
        return result

    def _record(self, query: Tensor, key: Tensor, keys: Layout, causal: bool) -> None:
        if self.recorded is not None:
            assert isinstance(keys, PaddedLayout)
            self.recorded.append(_weights(query, key, keys.mask, causal))


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Attention weights (B, H, T, S), which the fused kernel does not return."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ key.to(dtype).transpose(2, 3) / math.sqrt(query.size(-1))
    if causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    return (scores if mask is None else scores.where(mask, -torch.inf)).softmax(dim=-1)
