"""How the tokens of a batch lie in the rows (rows, model_dim) that the model's layers compute on.

All layers but attention treat each token by itself, and so compute on a matrix with a row for each
token. A layout knows which rows belong to a sentence. Only attention needs it: it splits the rows
into sentences and heads, attends within sentences, and joins the results to rows again.

- `PaddedLayout`: sentences filled up with padding to one length; attention reads a mask. Used on
  every device.
- `PackedLayout`: sentences one after the other, without padding between them; attention reads where
  each begins. Used for training on GPUs (backends.py says when).

Dimensions in shapes: `batch` is the number of sentences, `positions` the number of positions of
each, `rows` the number of tokens; `model_dim` is the setting d_model, `key_dim` d_k and `value_dim`
d_v.
"""

import math
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from bleuprint.model.packed_kernels import attend_packed
from bleuprint.model.rows import Size, pad_rows, unpad_rows


class PaddedLayout(NamedTuple):
    """Sentences of one length, with padding at their ends.

    Attributes:
        size: The number of sentences, and the number of positions of each.
        mask: False at padding, (batch, 1, 1, positions); None if nothing is masked.
        fill: Whether `pad_rows` adds rows, so that few numbers of rows occur. oneDNN needs it;
            compiled layers and GPUs do not.
        recorded_weights: Where `attend` appends the weights of attention to this layout's keys,
            (batch, heads, positions of the queries, positions); None: nowhere.
    """

    size: Size
    mask: Tensor | None = None
    fill: bool = True
    recorded_weights: list[Tensor] | None = None

    def rows(self, x: Tensor) -> Tensor:
        """Return a batch (batch, positions, model_dim) as rows (rows, model_dim)."""
        return pad_rows(x) if self.fill else x.flatten(0, 1)

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Split rows into sentences and heads.

        Args:
            rows: Queries, keys or values, (rows, heads x key_dim).
            heads: The number of heads.

        Returns:
            The same numbers, (batch, heads, positions, key_dim).
        """
        batch = unpad_rows(rows, self.size)
        sentences, positions = self.size
        return batch.view(sentences, positions, heads, -1).transpose(1, 2)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_layout: "Layout",
        is_causal: bool,
        dropout: float,
    ) -> Tensor:
        """Compute softmax(query x key^T / sqrt(key_dim)) x value (section 3.2.1) of each head.

        Args:
            query: Queries in this layout, (batch, heads, positions, key_dim).
            key: Keys in `key_layout`, (batch, heads, key_positions, key_dim).
            value: Values in `key_layout`, (batch, heads, key_positions, value_dim).
            key_layout: The layout of the positions that are attended to.
            is_causal: Whether no position sees a later one.
            dropout: The dropout probability of attention weights.

        Returns:
            The weighted sums, their heads side by side, in rows (rows, heads x value_dim).
        """
        assert isinstance(key_layout, PaddedLayout)
        if key_layout.recorded_weights is not None:
            weights = attention_weights(query, key, key_layout.mask, is_causal)
            key_layout.recorded_weights.append(weights)
        dtype = query.dtype
        if dtype.itemsize == 2 and query.device.type == "cpu":
            # torch's kernel for CPUs takes six times as long for the gradient in bfloat16.
            query = query.float()
            key = key.float()
            value = value.float()
        mixed = functional.scaled_dot_product_attention(
            query, key, value, key_layout.mask, dropout, is_causal=is_causal
        )
        heads_side_by_side = mixed.transpose(1, 2).flatten(2)
        return self.rows(heads_side_by_side.to(dtype))


class PackedLayout(NamedTuple):
    """Sentences one after the other, without padding.

    Attributes:
        offsets: The row where each sentence begins, and the number of rows at the end,
            (batch + 1,), int32.
        max_length: A bound of the sentences' lengths in tokens.
    """

    offsets: Tensor
    max_length: int

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Return rows (rows, heads x key_dim) with separate heads, (rows, heads, key_dim)."""
        return rows.view(rows.size(0), heads, -1)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_layout: "Layout",
        is_causal: bool,
        dropout: float,
    ) -> Tensor:
        """Compute softmax(query x key^T / sqrt(key_dim)) x value (section 3.2.1) of each head.

        Args:
            query: Queries in this layout, (rows, heads, key_dim).
            key: Keys in `key_layout`, (key_rows, heads, key_dim).
            value: Values in `key_layout`, (key_rows, heads, value_dim).
            key_layout: The layout of the tokens that are attended to.
            is_causal: Whether no position sees a later one.
            dropout: Must be 0: the kernels cannot drop attention weights.

        Returns:
            The weighted sums, their heads side by side, in rows (rows, heads x value_dim).
        """
        assert isinstance(key_layout, PackedLayout)
        assert not dropout, "the kernels have no dropout of attention weights"
        mixed = attend_packed(
            query,
            key,
            value,
            self.offsets,
            key_layout.offsets,
            self.max_length,
            key_layout.max_length,
            is_causal,
        )
        return mixed.flatten(1)


Layout: TypeAlias = PaddedLayout | PackedLayout


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Compute attention weights, which the fused kernel does not return.

    Args:
        query: Queries, (batch, heads, positions, key_dim).
        key: Keys, (batch, heads, key_positions, key_dim).
        mask: False at keys of padding, (batch, 1, 1, key_positions); None if nothing is masked, as
            always in causal attention, where padding follows all tokens.
        is_causal: Whether no position sees a later one.

    Returns:
        The weights, (batch, heads, positions, key_positions), which sum to 1 over
            the keys; in float32 or
        more.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ key.to(dtype).transpose(2, 3) / math.sqrt(query.size(-1))
    if is_causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.where(mask, -torch.inf)
    return scores.softmax(dim=-1)
