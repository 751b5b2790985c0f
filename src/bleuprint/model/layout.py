"""How the tokens of a batch lie in the rows (R, D) that the model's layers compute on.

All layers but attention treat each token by itself, and so compute on a matrix with a row for each
token. A layout knows which rows belong to a sentence. Only attention needs it: it splits the rows
into sentences and heads, attends within sentences, and joins the results to rows again.

- `PaddedLayout`: sentences filled up with padding to one length; attention reads a mask. Used on
  every device.
- `PackedLayout`: sentences one after the other, without padding between them; attention reads where
  each begins. Used for training on GPUs (backends.py says when).

Dimensions in shapes: B sentences, T positions of each, R rows, D d_model, H heads, K d_k (values
have d_v).
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
        size: The number of sentences B and of positions T.
        mask: False at padding, (B, 1, 1, T); None if nothing is masked.
        fill: Whether `pad_rows` adds rows, so that few numbers of rows occur. oneDNN needs it;
            compiled layers and GPUs do not.
        recorded_weights: Where `attend` appends the weights of attention to this layout's keys,
            (B, H, T of the queries, T); None: nowhere.
    """

    size: Size
    mask: Tensor | None = None
    fill: bool = True
    recorded_weights: list[Tensor] | None = None

    def rows(self, x: Tensor) -> Tensor:
        """Return a batch (B, T, D) as rows (R, D)."""
        return pad_rows(x) if self.fill else x.flatten(0, 1)

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Return rows (R, H x K) as sentences and heads, (B, H, T, K)."""
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
        """Compute softmax(query x key^T / sqrt(K)) x value (section 3.2.1) of each head.

        Args:
            query: Queries in this layout, (B, H, T, K).
            key: Keys in `key_layout`, (B, H, S, K).
            value: Values in `key_layout`, (B, H, S, d_v).
            key_layout: The layout of the S positions that are attended to.
            is_causal: Whether no position sees a later one.
            dropout: The dropout probability of attention weights.

        Returns:
            The weighted sums, their heads side by side, in rows (R, H x d_v).
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
        offsets: The row where each sentence begins, and R at the end, (B + 1,), int32.
        max_length: A bound of the sentences' lengths in tokens.
    """

    offsets: Tensor
    max_length: int

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Return rows (R, H x K) with separate heads, (R, H, K)."""
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
        """Compute attention as `PaddedLayout.attend`, of queries (R, H, K); without dropout."""
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
        query: Queries, (B, H, T, K).
        key: Keys, (B, H, S, K).
        mask: False at keys of padding, (B, 1, 1, S); None if nothing is masked, as always in causal
            attention, where padding follows all tokens.
        is_causal: Whether no position sees a later one.

    Returns:
        The weights, (B, H, T, S), which sum to 1 over S; in float32 or more.
    """
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ key.to(dtype).transpose(2, 3) / math.sqrt(query.size(-1))
    if is_causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.where(mask, -torch.inf)
    return scores.softmax(dim=-1)
