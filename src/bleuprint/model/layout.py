"""How the tokens of a batch lie in the rows (rows, d_model) that the model's layers compute on.

All layers but attention treat each token by itself, and so compute on a matrix with a row for each
token. A layout knows which rows belong to a sentence. Only attention needs it: it splits the rows
into sentences and heads, attends within sentences, and joins the results to rows again.

- `PaddedLayout`: sentences filled up with padding to one length; attention reads a mask. Used on
  every device.
- `PackedLayout`: sentences one after the other, without padding between them; attention reads where
  each begins. Used for training on GPUs (backends.py says when).

Dimensions in shapes: `batch` is the number of sentences, `positions` the number of positions of
each, `rows` the number of tokens; `d_model` is a setting of the model, `key_dim` is d_k and
`value_dim` d_v.
"""

import math
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from bleuprint.model.backends import padded_attention_dtype
from bleuprint.model.packed_kernels import attend_packed
from bleuprint.model.rows import Size, pad_rows, unpad_rows


class PaddedLayout(NamedTuple):
    """How sentences that are padded to one length lie in rows, one for each position.

    Attributes:
        size: The number of sentences, and the number of positions of each.
        mask: False at padding, (batch, 1, 1, positions); None if nothing is masked.
        rounds_up_rows: Whether rows of zeros are added, so that batches have fewer different
            numbers of rows: the library oneDNN compiles a kernel for each. Compiled layers and GPUs
            do not need it.
        recorded_weights: A list to which `attend` appends the weights of attention to these
            sentences, (batch, heads, query positions, positions); None records nothing.
        score_bias: What self-attention adds to its scores, (heads, positions, positions); None adds
            nothing.
    """

    size: Size
    mask: Tensor | None = None
    rounds_up_rows: bool = True
    recorded_weights: list[Tensor] | None = None
    score_bias: Tensor | None = None

    def rows(self, x: Tensor) -> Tensor:
        """Flatten a batch to a matrix with a row for each position of each sentence.

        Args:
            x: The batch, (sentences, positions, columns).

        Returns:
            The rows, (rows, columns); with rows of zeros at the end if `rounds_up_rows` is True.
        """
        return pad_rows(x) if self.rounds_up_rows else x.flatten(0, 1)

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Split rows into sentences and heads, as torch's attention takes them.

        Args:
            rows: Queries, keys or values, one row for each position of each sentence, (rows, heads
                x key_dim).
            heads: The number of heads.

        Returns:
            The same numbers as (sentences, heads, positions, key_dim).
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
            query: The queries, (sentences, heads, positions, key_dim).
            key: The keys, (sentences, heads, key positions, key_dim).
            value: The values, (sentences, heads, key positions, value_dim).
            key_layout: The layout of keys and values, with the mask of their padding.
            is_causal: Whether no position attends to a later one.
            dropout: The dropout probability of attention weights.

        Returns:
            The weighted sums of the values, with heads side by side, one row for each query
            position of each sentence, (rows, heads x value_dim).
        """
        assert isinstance(key_layout, PaddedLayout)
        mask = key_layout.mask
        if key_layout.score_bias is not None:
            mask = _biased_mask(key_layout.score_bias, mask, is_causal)
            is_causal = False  # The mask contains it now.
        if key_layout.recorded_weights is not None:
            # Only for attention maps: the kernel below does not return the weights.
            weights = attention_weights(query, key, mask, is_causal)
            key_layout.recorded_weights.append(weights)
        fastest_dtype = padded_attention_dtype(query)
        weighted_sums = functional.scaled_dot_product_attention(
            query.to(fastest_dtype),
            key.to(fastest_dtype),
            value.to(fastest_dtype),
            mask if mask is None or mask.dtype == torch.bool else mask.to(fastest_dtype),
            dropout,
            is_causal=is_causal,
        )
        heads_side_by_side = weighted_sums.transpose(1, 2).flatten(2)
        return self.rows(heads_side_by_side.to(query.dtype))


class PackedLayout(NamedTuple):
    """How sentences of different lengths lie in rows, one after the other and without padding.

    Attributes:
        offsets: The row where each sentence begins, and the number of rows at the end,
            (sentences + 1,), int32.
        max_length: A number of tokens that no sentence exceeds.
    """

    offsets: Tensor
    max_length: int

    def split_heads(self, rows: Tensor, heads: int) -> Tensor:
        """Return rows (rows, heads x key_dim) with separate heads, (rows, heads, key_dim).

        Args:
            rows: Queries, keys or values of all heads, (rows, heads x key_dim).
            heads: The number of heads.
        """
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

        A query attends to the keys of its own sentence.

        Args:
            query: The queries of all sentences, (rows, heads, key_dim).
            key: The keys of all sentences, (key rows, heads, key_dim).
            value: The values of all sentences, (key rows, heads, value_dim).
            key_layout: Which rows of keys and values belong to a sentence.
            is_causal: Whether no position attends to a later one.
            dropout: Must be 0: the kernels cannot drop attention weights.

        Returns:
            The weighted sums of the values, with heads side by side, (rows, heads x value_dim).
        """
        assert isinstance(key_layout, PackedLayout)
        assert not dropout, "the kernels have no dropout of attention weights"
        weighted_sums = attend_packed(
            query,
            key,
            value,
            self.offsets,
            key_layout.offsets,
            self.max_length,
            key_layout.max_length,
            is_causal,
        )
        return weighted_sums.flatten(1)


def _biased_mask(bias: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Return what is added to scores of self-attention: a bias, and -inf where a mask is False.

    Args:
        bias: The bias, (heads, positions, positions).
        mask: False at keys that are padding, (sentences, 1, 1, positions); None without padding.
        is_causal: Whether no position attends to a later one.

    Returns:
        The numbers to add, (sentences or 1, heads, positions, positions).
    """
    biased = bias[None]
    if is_causal:
        is_visible = torch.ones(bias.shape[1:], dtype=torch.bool, device=bias.device).tril()
        biased = biased.where(is_visible, -torch.inf)
    if mask is not None:
        biased = biased.where(mask, -torch.inf)
    return biased


Layout: TypeAlias = PaddedLayout | PackedLayout


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Compute the attention weights, softmax(query x key^T / sqrt(key_dim)), to show them.

    The model itself uses torch's fused kernel, which does not return the weights.

    Args:
        query: The queries, (sentences, heads, positions, key_dim).
        key: The keys, (sentences, heads, key positions, key_dim).
        mask: False at keys that are padding, (sentences, 1, 1, key positions). None if there is no
            padding, or if attention is causal: padding follows all tokens of a sentence. Or numbers
            to add to the scores, (sentences or 1, heads, positions, key positions).
        is_causal: Whether no position attends to a later one.

    Returns:
        The weights, (sentences, heads, positions, key positions). Over the keys, they sum to 1.
    """
    # At least float32: 16 bits would be too coarse to show.
    dtype = torch.promote_types(query.dtype, torch.float32)
    scores = query.to(dtype) @ key.to(dtype).transpose(2, 3) / math.sqrt(query.size(-1))
    if is_causal:
        # True on and below the diagonal: each query sees its own position and earlier ones.
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.where(mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1)
