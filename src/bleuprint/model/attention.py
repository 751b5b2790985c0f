"""Multi-head attention (section 3.2).

Dimensions in shapes: `rows` are the tokens of all sentences in a batch, one token in each row (see
layout.py). `hypotheses` are the new tokens of a search, one for each hypothesis. The settings of
the model have the other dimensions: `d_model`, `key_dim` (d_k) and `value_dim` (d_v).
"""

import math

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.layout import Layout
from bleuprint.model.linear import Linear, linear
from bleuprint.model.positions import rotate


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2); queries, keys and values are projected by one matrix.

    Self-attention is `forward`, and `step` for one new token of each hypothesis of a search.
    Attention to the encoder's output is `attend_memory`, and `step_memory`.

    Attributes:
        heads: The number of heads.
        qkv_sizes: How many outputs of `in_proj` are queries (heads x key_dim), keys (heads x
            key_dim) and values (heads x value_dim); they follow each other in this order.
        dropout: The dropout probability of attention weights.
        is_rotary: Whether queries and keys of self-attention are rotated by their positions.
        query_scale: A factor of the queries. All kernels divide by sqrt(key_dim); where the
            settings want no such scale, it is sqrt(key_dim), otherwise 1.
    """

    def __init__(self, settings: Settings) -> None:
        """Create the projections: of queries, keys and values together, and of the output."""
        super().__init__()
        self.heads = settings.heads
        key_size = settings.heads * settings.d_k
        value_size = settings.heads * settings.d_v
        self.qkv_sizes = [key_size, key_size, value_size]  # Queries have the size of keys.
        self.in_proj = Linear(settings.d_model, sum(self.qkv_sizes), bias=settings.bias)
        self.out_proj = Linear(value_size, settings.d_model, bias=settings.bias)
        self.dropout = settings.dropout.attention
        self.is_rotary = settings.positional_encoding == "rotary"
        self.query_scale = 1.0 if settings.scale_attention else math.sqrt(settings.d_k)

    def forward(self, x: Tensor, layout: Layout, is_causal: bool = False) -> Tensor:
        """Compute self-attention: each token attends to the tokens of its sentence.

        Args:
            x: The tokens, (rows, d_model).
            layout: Which rows belong to which sentence.
            is_causal: Whether tokens do not attend to later ones, as in the decoder.

        Returns:
            The output of the sublayer, (rows, d_model).
        """
        query, key, value = self.project_qkv(x, layout)
        weighted_sums = layout.attend(
            query,
            key,
            value,
            key_layout=layout,  # Queries and keys come from the same rows.
            is_causal=is_causal,
            dropout=self._active_dropout,
        )
        output: Tensor = self.out_proj(weighted_sums)
        return output

    def attend_memory(
        self, x: Tensor, layout: Layout, key: Tensor, value: Tensor, memory_layout: Layout
    ) -> Tensor:
        """Compute cross-attention: target tokens attend to the encoder's output for their sentence.

        Args:
            x: The target tokens, (rows, d_model).
            layout: Which rows belong to which sentence.
            key: The keys of the encoder's output, from `project_key_value`.
            value: The values of the encoder's output, from `project_key_value`.
            memory_layout: Which keys and values belong to which sentence.

        Returns:
            The output of the sublayer, (rows, d_model).
        """
        query = layout.split_heads(self._project_query(x), self.heads)
        weighted_sums = layout.attend(
            query,
            key,
            value,
            key_layout=memory_layout,
            is_causal=False,
            dropout=self._active_dropout,
        )
        output: Tensor = self.out_proj(weighted_sums)
        return output

    def step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """Compute self-attention in a search: a new token attends to itself and earlier tokens.

        Args:
            x: The new tokens, (hypotheses, d_model).
            layer: The number of the decoder layer, from 0.
            cache: The keys and values of earlier tokens. The keys and values of the new tokens are
                added.

        Returns:
            The output of the sublayer, (hypotheses, d_model).
        """
        query, key, value = torch.split(self.in_proj(x), self.qkv_sizes, dim=-1)
        if self.is_rotary:
            query = self._rotate_tokens(query, cache.position)
            key = self._rotate_tokens(key, cache.position)
        weighted_sums = cache.self_attend(layer, self._scale_query(query), key, value)
        output: Tensor = self.out_proj(weighted_sums)
        return output

    def step_memory(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """Compute cross-attention in a search: a new token attends to its source sentence.

        Args:
            x: The new tokens, (hypotheses, d_model).
            layer: The number of the decoder layer, from 0.
            cache: The keys and values of the source sentences.

        Returns:
            The output of the sublayer, (hypotheses, d_model).
        """
        output: Tensor = self.out_proj(cache.cross_attend(layer, self._project_query(x)))
        return output

    def project_qkv(self, x: Tensor, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of tokens for self-attention, split into heads.

        With rotary encoding, queries and keys are rotated by the position of their token.

        Args:
            x: The tokens, (rows, d_model).
            layout: Which rows belong to which sentence.
        """
        projected = torch.split(self.in_proj(x), self.qkv_sizes, dim=-1)
        query, key, value = (layout.split_heads(part, self.heads) for part in projected)
        if self.is_rotary:
            query = rotate(query, first_position=0)
            key = rotate(key, first_position=0)
        return self._scale_query(query), key, value

    def project_key_value(self, memory: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the encoder's output, split into heads.

        Args:
            memory: The encoder's output, (rows, d_model).
            layout: Which rows belong to which sentence.
        """
        query_size, *key_value_sizes = self.qkv_sizes
        keys_and_values = slice(query_size, None)
        projected = self._project_part(memory, keys_and_values)
        key, value = torch.split(projected, key_value_sizes, dim=-1)
        return layout.split_heads(key, self.heads), layout.split_heads(value, self.heads)

    def _project_query(self, x: Tensor) -> Tensor:
        """Return the queries of tokens (rows, d_model), as (rows, heads x key_dim)."""
        query_size = self.qkv_sizes[0]
        queries = slice(query_size)
        return self._scale_query(self._project_part(x, queries))

    def _project_part(self, x: Tensor, outputs: slice) -> Tensor:
        """Compute some of the outputs of `in_proj`, such as the queries alone.

        In cross-attention, queries come from the decoder, keys and values from the encoder. So each
        input needs only a part of the projection.

        Args:
            x: The tokens, (rows, d_model).
            outputs: Which outputs to compute.
        """
        weight, bias = self.in_proj.parameters_as(x.dtype)
        if bias is not None:
            bias = bias[outputs]
        return linear(x, weight[outputs], bias)

    def _rotate_tokens(self, x: Tensor, position: int) -> Tensor:
        """Rotate the queries or keys of new tokens in a search, for rotary encoding.

        Args:
            x: Queries or keys, (hypotheses, heads x key_dim).
            position: The position of all these tokens in their hypotheses.

        Returns:
            The rotated queries or keys, (hypotheses, heads x key_dim).
        """
        # `rotate` takes (..., positions, key_dim); here there is one position.
        by_head = x.view(len(x), self.heads, 1, -1)
        return rotate(by_head, position).flatten(1)

    def _scale_query(self, query: Tensor) -> Tensor:
        """Return queries multiplied by `query_scale`."""
        if self.query_scale == 1.0:
            return query  # A product would copy the queries without changing them.
        return query * self.query_scale

    @property
    def _active_dropout(self) -> float:
        """The dropout probability of attention weights: 0 outside training."""
        return self.dropout if self.training else 0.0
