"""Keys and values of earlier decoding steps, so that each position is computed once.

Entries are written once and not moved: copying them at every step, as the hypotheses of the beam
change, takes longer than attention itself. Instead, a hypothesis attends over the entries of all
hypotheses that its sentence has had, with a bias that masks all but its own history. Most
hypotheses share their older tokens. Entries that no hypothesis uses any more are dropped now and
then ("compacted").

Dimensions in shapes: B sentences still being decoded, W hypotheses per sentence (the same for all),
N = B x W hypotheses; H heads, K d_k (values have d_v), S source positions, E entries per sentence
(one for each step of each hypothesis), R stored sentences, at least B.
"""

import torch
from torch import Tensor

from bleuprint import native
from bleuprint.model.backends import native_attention

# Stored sentences and entries are compacted once less than this share of them is in use.
_MIN_SHARE_IN_USE = 0.5
# Entries are checked first when there are so many per sentence, then whenever their number has
# doubled.
_MIN_ENTRIES = 32
# New room for entries: twice those in use, and so many more, since the first step has one entry.
_EXTRA_ROOM = 8


class KVCache:
    """Keys and values of each decoder layer, for the source and for the tokens decoded so far.

    A search calls `advance` at the start of each step; each layer then calls `self_attend` and
    `cross_attend`; at the end of the step, `reorder` keeps the hypotheses that go on.

    Attributes:
        position: The position of the current step's tokens, from 0; -1 before the first step.
    """

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """Create the cache before the first step.

        Args:
            source: Keys (B, H, S, K) and values (B, H, S, d_v) of the source, for each layer.
            mask: False at the source's padding, (B, 1, 1, S); None without padding.
        """
        self.position = -1
        self._source = [(key.contiguous(), value.contiguous()) for key, value in source]
        first_key, first_value = source[0]
        sentences = first_key.size(0)
        self._mask = None if mask is None else _bias(mask, first_key)
        # The stored row of each sentence, (B,); None: row i is sentence i.
        self._rows: Tensor | None = None
        self._stored = sentences
        self._sentences = sentences
        # Keys (R, H, E or more, K) and values of the target, by layer; a layer's first step adds
        # them.
        self._target: list[tuple[Tensor, Tensor]] = []
        self._entries = 0
        self._compact_at = _MIN_ENTRIES
        # Which entries are in the history of each hypothesis, (B, W, E).
        self._history = torch.ones(sentences, 1, 0, dtype=torch.bool, device=first_key.device)
        # The bias of the current step, (R, H, W, E); `advance` sets it.
        self._bias = first_key
        # The compiled attention, or None where torch computes.
        self._library = native_attention(first_key, first_value)
        # Which source positions are not padding, by stored row, (R, S); the compiled attention
        # takes it in place of a bias.
        if mask is None:
            self._is_source = first_key.new_ones(sentences, first_key.size(2), dtype=torch.bool)
        else:
            self._is_source = mask[:, 0, 0].contiguous()

    def advance(self, hypotheses: int) -> None:
        """Start the next step, for N hypotheses: one new entry for each."""
        self.position += 1
        if self._entries >= self._compact_at:
            self._compact_entries()
        width = hypotheses // self._sentences
        # Of the W new entries of a sentence, each hypothesis sees its own.
        own_entry = torch.eye(width, dtype=torch.bool, device=self._history.device)
        new_history = own_entry.expand(self._sentences, -1, -1)
        self._history = torch.cat((self._history, new_history), dim=2)
        self._entries += width
        if self._library is not None:
            return  # It reads the history itself.
        history = self._history
        if self._rows is not None:
            # Rows not in use must attend to something, or their softmax is NaN.
            history_of_rows = history.new_ones(self._stored, *history.shape[1:])
            history = history_of_rows.index_copy_(0, self._rows, history)
        self._bias = _bias(history[:, None], self._source[0][0])

    def self_attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Store the keys and values of the current step's tokens, and attend to all histories.

        Args:
            layer: The number of the decoder layer, from 0.
            query: Queries, (N, H x K).
            key: Keys, (N, H x K).
            value: Values, (N, H x d_v).

        Returns:
            The weighted sums of the values, (N, H x d_v).
        """
        heads = self._source[layer][0].size(1)
        if layer == len(self._target):
            self._add_layer(query, heads, key.size(1) // heads, value.size(1) // heads)
        width = len(query) // self._sentences
        stored_key, stored_value = self._target[layer]
        keys = self._with_room(stored_key, width)
        values = self._with_room(stored_value, width)
        self._target[layer] = (keys, values)
        if self._library is not None:
            return self._attend_natively((query, key, value), keys, values, self._history)
        rows = slice(None) if self._rows is None else self._rows
        new_entries = slice(self._entries - width, self._entries)
        keys[rows, :, new_entries] = self._by_sentence(key, heads)
        values[rows, :, new_entries] = self._by_sentence(value, heads)
        used_keys = keys[:, :, : self._entries]
        used_values = values[:, :, : self._entries]
        return self._attend(self._by_sentence(query, heads), used_keys, used_values, self._bias)

    def cross_attend(self, layer: int, query: Tensor) -> Tensor:
        """Attend from the current step's tokens to the source.

        Args:
            layer: The number of the decoder layer, from 0.
            query: Queries, (N, H x K).

        Returns:
            The weighted sums of the source's values, (N, H x d_v).
        """
        key, value = self._source[layer]
        if self._library is not None:
            return self._attend_natively((query, None, None), key, value, self._is_source)
        return self._attend(self._by_sentence(query, key.size(1)), key, value, self._mask)

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "KVCache":
        """Keep some hypotheses of some sentences; changes this cache and returns it.

        Args:
            hypotheses: The hypotheses to keep, as indices into the current N; the same number of
                them for each sentence that is kept.
            sentences: The sentences to keep, as indices into the current B; None keeps all.
        """
        if sentences is not None:
            self._rows = sentences if self._rows is None else self._rows[sentences]
            self._sentences = len(sentences)
            if self._sentences < _MIN_SHARE_IN_USE * self._stored:
                self._compact_rows(self._rows)
        history = self._history.flatten(0, 1)[hypotheses]
        # At least 1: after the last sentence nothing is left to divide by.
        width = len(hypotheses) // max(1, self._sentences)
        self._history = history.view(self._sentences, width, self._entries)
        return self

    def _add_layer(self, like: Tensor, heads: int, key_size: int, value_size: int) -> None:
        """Add empty keys and values of the target for the next layer, in the type of `like`."""
        keys = like.new_empty(self._stored, heads, 0, key_size)
        values = like.new_empty(self._stored, heads, 0, value_size)
        self._target.append((keys, values))

    def _compact_rows(self, rows: Tensor) -> None:
        """Keep only the stored sentences `rows`, (B,), which become rows 0 to B - 1."""
        self._source = [(key[rows], value[rows]) for key, value in self._source]
        if self._mask is not None:
            self._mask = self._mask[rows]
        self._is_source = self._is_source[rows]
        used = slice(self._entries)
        self._target = [(key[rows, :, used], value[rows, :, used]) for key, value in self._target]
        self._rows = None
        self._stored = len(rows)

    def _compact_entries(self) -> None:
        """Keep the entries that some hypothesis of their sentence uses, in their order.

        All sentences keep as many entries as the sentence that uses most. So other sentences keep
        some entries that they do not use; their history masks them.
        """
        is_used = self._history.any(dim=1)  # (B, E)
        kept_entries = int(is_used.sum(dim=1).max())
        if kept_entries < _MIN_SHARE_IN_USE * self._entries:
            if self._rows is not None:
                self._compact_rows(self._rows)
            # A stable sort puts the used entries first, in their order.
            ranks = is_used.byte().argsort(dim=1, descending=True, stable=True)
            kept = ranks[:, :kept_entries]
            sentences = torch.arange(len(kept), device=kept.device)[:, None]
            compacted = []
            for key, value in self._target:
                # Indices on both sides of a slice put their dimensions first: (B, kept, H, K).
                kept_keys = key[sentences, :, kept].transpose(1, 2)
                kept_values = value[sentences, :, kept].transpose(1, 2)
                compacted.append((kept_keys, kept_values))
            self._target = compacted
            self._history = self._history[sentences, :, kept].transpose(1, 2)
            self._entries = kept_entries
        self._compact_at = max(_MIN_ENTRIES, 2 * kept_entries)

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """Return queries, keys or values (N, H x K) as (B, H, W, K)."""
        return x.view(self._sentences, -1, heads, x.size(1) // heads).transpose(1, 2)

    def _with_room(self, stored: Tensor, new_entries: int) -> Tensor:
        """Return keys or values with room for the current entries; a larger copy if they are full.

        Args:
            stored: Keys or values, (R, H, entries with room, K).
            new_entries: How many of the current entries are not stored yet.
        """
        if stored.size(2) >= self._entries:
            return stored
        room = 2 * self._entries + _EXTRA_ROOM
        larger = stored.new_empty(*stored.shape[:2], room, stored.size(3))
        old_entries = slice(self._entries - new_entries)
        larger[:, :, old_entries] = stored[:, :, old_entries]
        return larger

    def _attend_natively(
        self,
        projected: tuple[Tensor, Tensor | None, Tensor | None],
        keys: Tensor,
        values: Tensor,
        is_visible: Tensor,
    ) -> Tensor:
        """Compute `_attend` by native/search.cpp, which stores new keys and values first.

        Args:
            projected: Queries (N, H x K), and new keys and values to store, or None.
            keys: The stored keys, (R, H, entries with room, K).
            values: The stored values, (R, H, entries with room, d_v).
            is_visible: Which entries a hypothesis sees, (B, W, E); or which positions of the source
                are not padding, (R, S).

        Returns:
            The weighted sums of the values, (N, H x d_v).
        """
        assert self._library is not None
        _, heads, room, key_size = keys.shape
        value_size = values.size(3)
        hypotheses = len(projected[0])
        rows = torch.arange(self._sentences) if self._rows is None else self._rows
        result = keys.new_empty(hypotheses, heads * value_size)
        strides = [0 if x is None else x.stride(0) for x in projected]
        # The order of the C++ function's parameters.
        arguments = [
            *projected,
            *strides,
            keys,
            values,
            room,
            rows,
            is_visible.contiguous(),
            self._sentences,
            hypotheses // self._sentences,
            heads,
            key_size,
            value_size,
            is_visible.size(-1),
            result,
        ]
        self._library.attend(*native.c_arguments(*arguments))
        return result

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Attend from the current step's tokens to stored keys and values.

        Args:
            query: Queries, (B, H, W, K).
            key: Keys, (R, H, E or S, K).
            value: Values, (R, H, E or S, d_v).
            bias: What is added to the scores, (R, H, W or 1, E or S), or None.

        Returns:
            The weighted sums of the values, (N, H x d_v).
        """
        if self._rows is not None:
            # Queries of 0 for the rows not in use: copying the keys in use would take longer.
            query_of_rows = query.new_zeros(self._stored, *query.shape[1:])
            query = query_of_rows.index_copy_(0, self._rows, query)
        mixed = _attention(query, key, value, bias)
        if self._rows is not None:
            mixed = mixed[self._rows]
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)


def _bias(mask: Tensor, key: Tensor) -> Tensor:
    """Return what attention adds to its scores to mask: 0 where a mask is True, -inf elsewhere.

    Args:
        mask: A mask for all heads, (R, 1, W or 1, E or S).
        key: Keys, (R, H, ...), whose type and number of heads the bias has.

    Returns:
        The bias, (R, H, W or 1, E or S).
    """
    bias = torch.zeros(mask.shape, dtype=key.dtype, device=key.device)
    bias = bias.masked_fill_(~mask, -torch.inf)
    return bias.expand(-1, key.size(1), -1, -1).contiguous()


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Compute softmax(query x key^T / sqrt(K) + bias) x value (section 3.2.1).

    torch's fused kernel is a third slower for few queries.

    Args:
        query: Queries, (R, H, W, K).
        key: Keys, (R, H, E or S, K).
        value: Values, (R, H, E or S, d_v).
        bias: What is added to the scores, (R, H, W or 1, E or S), or None.

    Returns:
        The weighted sums, (R, H, W, d_v).
    """
    # Sentences and heads as one dimension, as batched products take them.
    queries = query.flatten(0, 1)
    keys = key.flatten(0, 1)
    values = value.flatten(0, 1)
    scale = query.size(-1) ** -0.5
    if bias is None:
        scores = torch.bmm(queries, keys.transpose(1, 2)).mul_(scale)
    else:
        scores = torch.baddbmm(bias.flatten(0, 1), queries, keys.transpose(1, 2), alpha=scale)
    return torch.bmm(scores.softmax(-1), values).view(*query.shape[:-1], -1)
