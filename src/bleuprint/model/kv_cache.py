"""Keys and values of earlier decoding steps, so that each position is computed once.

Entries are written once and not moved: copying them at every step, as the hypotheses of the beam
change, takes longer than attention itself. Instead, a hypothesis attends over the entries of all
hypotheses that its sentence has had, with a bias that masks all but its own history. Most
hypotheses share their older tokens. Entries that no hypothesis uses any more are dropped now and
then ("compacted").

Dimensions in shapes:

- sentences: the sentences that are still being decoded
- stored_sentences: these and finished sentences that have not been removed yet
- beam: the hypotheses of a sentence, the same number for each; 1 in the first step
- hypotheses: the hypotheses of all sentences, sentences x beam
- entries: the stored positions of a sentence, one for each step of each hypothesis
- heads: the heads of attention
- source_len: the positions of the source
- key_dim, value_dim: the settings d_k and d_v
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
            source: Keys (sentences, heads, source_len, key_dim) and values (sentences, heads,
                source_len, value_dim) of the source, for each layer.
            mask: False at the source's padding, (sentences, 1, 1, source_len); None without
                padding.
        """
        self.position = -1
        self._source = [(key.contiguous(), value.contiguous()) for key, value in source]
        first_key, first_value = source[0]
        sentences = first_key.size(0)
        self._mask = None if mask is None else _bias(mask, first_key)
        # The stored row of each sentence, (sentences,); None as long as row i is sentence i.
        self._rows: Tensor | None = None
        self._stored = sentences
        self._sentences = sentences
        # Keys (stored_sentences, heads, entries or more, key_dim) and values of the target, by
        # layer; a layer's first step adds them.
        self._target: list[tuple[Tensor, Tensor]] = []
        self._entries = 0
        self._compact_at = _MIN_ENTRIES
        # Which entries are in the history of each hypothesis, (sentences, beam, entries).
        self._history = torch.ones(sentences, 1, 0, dtype=torch.bool, device=first_key.device)
        # The bias of the current step, (stored_sentences, heads, beam, entries); `advance` sets it.
        self._bias = first_key
        # The compiled attention, or None where torch computes.
        self._library = native_attention(first_key, first_value)
        # Which source positions are not padding, by stored row, (stored_sentences, source_len); the
        # compiled attention takes it in place of a bias.
        if mask is None:
            self._is_source = first_key.new_ones(sentences, first_key.size(2), dtype=torch.bool)
        else:
            self._is_source = mask[:, 0, 0].contiguous()

    def advance(self, hypotheses: int) -> None:
        """Start the next step, in which each hypothesis gets one new entry."""
        self.position += 1
        if self._entries >= self._compact_at:
            self._compact_entries()
        width = hypotheses // self._sentences
        # Of the new entries of a sentence, each hypothesis sees only its own.
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
            query: Queries, (hypotheses, heads x key_dim).
            key: Keys, (hypotheses, heads x key_dim).
            value: Values, (hypotheses, heads x value_dim).

        Returns:
            The weighted sums of the values, (hypotheses, heads x value_dim).
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
            query: Queries, (hypotheses, heads x key_dim).

        Returns:
            The weighted sums of the source's values, (hypotheses, heads x value_dim).
        """
        key, value = self._source[layer]
        if self._library is not None:
            return self._attend_natively((query, None, None), key, value, self._is_source)
        return self._attend(self._by_sentence(query, key.size(1)), key, value, self._mask)

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "KVCache":
        """Keep some hypotheses of some sentences; changes this cache and returns it.

        Args:
            hypotheses: The hypotheses to keep, as indices into all current hypotheses; the same
                number for each sentence that is kept.
            sentences: The sentences to keep, as indices into the current sentences; None keeps
                all.
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
        """Remove stored sentences.

        Args:
            rows: The rows of the stored sentences to keep, (sentences,); they are numbered anew
                from 0, in this order.
        """
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
        is_used = self._history.any(dim=1)  # (sentences, entries)
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
                # Indices on both sides of a slice put their dimensions first: (sentences, kept,
                # heads, key_dim).
                kept_keys = key[sentences, :, kept].transpose(1, 2)
                kept_values = value[sentences, :, kept].transpose(1, 2)
                compacted.append((kept_keys, kept_values))
            self._target = compacted
            self._history = self._history[sentences, :, kept].transpose(1, 2)
            self._entries = kept_entries
        self._compact_at = max(_MIN_ENTRIES, 2 * kept_entries)

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """Group queries, keys or values by sentence and head.

        Args:
            x: Queries, keys or values of all hypotheses, (hypotheses, heads x key_dim).
            heads: The number of heads.

        Returns:
            A view of them, (sentences, heads, beam, key_dim).
        """
        return x.view(self._sentences, -1, heads, x.size(1) // heads).transpose(1, 2)

    def _with_room(self, stored: Tensor, new_entries: int) -> Tensor:
        """Return stored keys or values that have room for the entries of the current step.

        The tensor is returned itself if it has room, otherwise a larger copy. It has more room than
        there are entries, so that few steps copy it.

        Args:
            stored: Keys or values, (stored_sentences, heads, room, key_dim), where `room` is the
                number of entries that they can hold.
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
        """Attend from the current step's tokens to stored keys and values, in C++.

        native/search.cpp computes what `_attend` computes with torch. If there are new keys and
        values, it first copies them to the newest entries of `keys` and `values`.

        Args:
            projected: Queries and new keys, (hypotheses, heads x key_dim), and new values,
                (hypotheses, heads x value_dim). For attention to the source, keys and values are
                None.
            keys: The stored keys, (stored_sentences, heads, room, key_dim), where `room` is the
                number of entries that they can hold.
            values: The stored values, (stored_sentences, heads, room, value_dim).
            is_visible: Which keys may be attended to. With new keys and values (self-attention),
                the entries that each hypothesis sees, (sentences, beam, entries). Without them
                (attention to the source), the positions that are not padding,
                (stored_sentences, source_len).

        Returns:
            The weighted sums of the values, (hypotheses, heads x value_dim).
        """
        assert self._library is not None
        _, heads, room, key_dim = keys.shape
        value_dim = values.size(3)
        query, new_key, new_value = projected
        hypotheses = query.size(0)
        # Without `_rows`, each sentence is in the row of its number.
        rows = torch.arange(self._sentences) if self._rows is None else self._rows
        weighted_sums = keys.new_empty(hypotheses, heads * value_dim)
        arguments = [
            query,
            new_key,
            new_value,
            # The number of elements from one hypothesis to the next, of each of the three tensors.
            # C++ does not use it where a tensor is None.
            query.stride(0),
            0 if new_key is None else new_key.stride(0),
            0 if new_value is None else new_value.stride(0),
            keys,
            values,
            room,  # The entries that `keys` and `values` can hold.
            rows,  # The row of each sentence in `keys` and `values`.
            is_visible.contiguous(),
            self._sentences,
            hypotheses // self._sentences,  # The beam.
            heads,
            key_dim,
            value_dim,
            is_visible.size(-1),  # The entries, or source positions, in use.
            weighted_sums,  # Written by C++.
        ]
        self._library.attend(*native.c_arguments(*arguments))
        return weighted_sums

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Attend from the current step's tokens to stored keys and values, with torch.

        `keys` in the shapes are the entries of the target, or the positions of the source.

        Args:
            query: Queries, (sentences, heads, beam, key_dim).
            key: Keys, (stored_sentences, heads, keys, key_dim).
            value: Values, (stored_sentences, heads, keys, value_dim).
            bias: What is added to the scores, (stored_sentences, heads, beam or 1, keys),
                or None.

        Returns:
            The weighted sums of the values, (hypotheses, heads x value_dim).
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
    """Convert a mask to a bias, which attention adds to its scores before the softmax.

    The bias is 0 where the mask is True. It is -inf elsewhere, which makes the attention weight 0.

    Args:
        mask: A mask that is the same for all heads, (stored_sentences, 1, queries, keys). For
            self-attention, `queries` are the hypotheses of a sentence; for attention to the source,
            1, since all have the same mask.
        key: Keys, (stored_sentences, heads, ...), which decide the type, the device and the number
            of heads of the bias.

    Returns:
        The bias, (stored_sentences, heads, queries, keys).
    """
    bias = torch.zeros(mask.shape, dtype=key.dtype, device=key.device)
    bias = bias.masked_fill_(~mask, -torch.inf)
    return bias.expand(-1, key.size(1), -1, -1).contiguous()


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Compute softmax(query x key^T / sqrt(key_dim) + bias) x value (section 3.2.1).

    torch's fused kernel is a third slower for few queries.

    Args:
        query: Queries, (stored_sentences, heads, beam, key_dim).
        key: Keys, (stored_sentences, heads, keys, key_dim).
        value: Values, (stored_sentences, heads, keys, value_dim).
        bias: What is added to the scores, (stored_sentences, heads, beam or 1, keys),
            or None.

    Returns:
        The weighted sums, (stored_sentences, heads, beam, value_dim).
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
