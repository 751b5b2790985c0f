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
# Unused entries are looked for first when a sentence has this many entries, and then whenever their
# number has doubled.
_FIRST_COMPACTION = 32
# A full tensor grows to twice its entries and this many more, since the first step has one entry.
_EXTRA_CAPACITY = 8


class KVCache:
    """Keys and values of each decoder layer, for the source and for the tokens decoded so far.

    A search calls `advance` at the start of each step; each layer then calls `self_attend` and
    `cross_attend`; at the end of the step, `reorder` keeps the hypotheses that go on.

    Attributes:
        position: The position of the current step's tokens, from 0; -1 before the first step.
    """

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """Create the cache before the first step, with the keys and values of the sources.

        Args:
            source: For each decoder layer, the keys of the sources, (sentences, heads, source_len,
                key_dim), and their values, (sentences, heads, source_len, value_dim).
            mask: False where the sources have padding, (sentences, 1, 1, source_len); None if they
                have none.
        """
        self.position = -1
        self._source = [(key.contiguous(), value.contiguous()) for key, value in source]
        first_key, first_value = source[0]
        sentences = first_key.size(0)
        # Attention adds it to the scores of the source positions: -inf at padding, which then gets
        # no weight, 0 elsewhere. None without padding.
        self._source_bias = None if mask is None else _mask_to_bias(mask, first_key)
        # The number of sentences that are still decoded.
        self._sentences = sentences
        # The number of sentences in the stored tensors, from which finished ones are removed later.
        self._stored_sentences = sentences
        # The row of each sentence in the stored tensors, (sentences,); None as long as sentence i
        # is in row i.
        self._rows: Tensor | None = None
        # The keys and values of the target tokens, for each layer; the first step adds the layers.
        # An entry is the key and the value of one token of one hypothesis.
        self._target: list[tuple[Tensor, Tensor]] = []
        self._entries = 0  # The number of entries of each sentence.
        self._next_compaction = _FIRST_COMPACTION  # At so many entries, unused ones are looked for.
        # Which entries are the tokens of each hypothesis, (sentences, beam, entries).
        self._history = torch.ones(sentences, 1, 0, dtype=torch.bool, device=first_key.device)
        # The same as a bias that self-attention adds to its scores, (stored_sentences, heads, beam,
        # entries): -inf for the entries of other hypotheses. `advance` computes it for each step,
        # unless C++ computes attention.
        self._history_bias: Tensor | None = None
        # The C++ functions that compute attention; None where torch computes it.
        self._library = native_attention(first_key, first_value)
        # Which source positions are not padding, (stored_sentences, source_len). C++ takes this in
        # place of a bias.
        if mask is None:
            self._is_source = first_key.new_ones(sentences, first_key.size(2), dtype=torch.bool)
        else:
            self._is_source = mask[:, 0, 0].contiguous()

    def advance(self, hypotheses: int) -> None:
        """Start the next decoding step, in which each hypothesis gets one more token.

        The key and the value of one token of one hypothesis are an "entry". All hypotheses of a
        sentence store their entries in the same tensor; the history says which of them are a
        hypothesis's own tokens, to which alone it attends. This adds the new tokens to the history.

        Args:
            hypotheses: The number of hypotheses of all sentences; each sentence has equally many.
        """
        self.position += 1
        if self._entries >= self._next_compaction:
            self._compact_entries()
        beam = hypotheses // self._sentences
        # Each sentence gets `beam` new entries, and its hypothesis i sees only entry i.
        own_entry = torch.eye(beam, dtype=torch.bool, device=self._history.device)
        new_history = own_entry.expand(self._sentences, -1, -1)
        self._history = torch.cat((self._history, new_history), dim=2)
        self._entries += beam
        if self._library is not None:
            return  # C++ reads the history itself and needs no bias.
        history = self._history
        if self._rows is not None:
            # Some stored sentences are finished. Their results are ignored, but attention computes
            # them, and a softmax over no entries would be NaN. So they attend to all entries.
            history_of_rows = history.new_ones(self._stored_sentences, *history.shape[1:])
            history = history_of_rows.index_copy_(0, self._rows, history)
        self._history_bias = _mask_to_bias(history[:, None], self._source[0][0])

    def self_attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend from the new token of each hypothesis to its earlier tokens and itself.

        The keys and values of the new tokens are stored for later steps.

        Args:
            layer: The number of the decoder layer, from 0.
            query: The queries of the new tokens, one for each hypothesis of each sentence,
                (hypotheses, heads x key_dim).
            key: The keys of the new tokens, (hypotheses, heads x key_dim).
            value: The values of the new tokens, (hypotheses, heads x value_dim).

        Returns:
            The weighted sums of the values, (hypotheses, heads x value_dim).
        """
        heads = self._source[layer][0].size(1)
        is_first_step = layer == len(self._target)
        if is_first_step:
            # New tensors get the type and the device of the query.
            self._add_layer(query, heads, key.size(1) // heads, value.size(1) // heads)
        beam = len(query) // self._sentences
        stored_keys, stored_values = self._target[layer]
        keys = self._with_capacity(stored_keys, beam)
        values = self._with_capacity(stored_values, beam)
        self._target[layer] = (keys, values)
        if self._library is not None:
            # C++ also stores the new keys and values.
            return self._attend_natively(query, key, value, keys, values, self._history)
        # If finished sentences are still stored, `_rows` are the rows of the unfinished ones.
        rows = slice(None) if self._rows is None else self._rows
        # `advance` has counted the new tokens already, so they are the last `beam` entries.
        new_entries = slice(self._entries - beam, self._entries)
        keys[rows, :, new_entries] = self._by_sentence(key, heads)
        values[rows, :, new_entries] = self._by_sentence(value, heads)
        # The tensors are larger than the number of entries, so the unused rest is cut off.
        return self._attend(
            self._by_sentence(query, heads),
            keys[:, :, : self._entries],
            values[:, :, : self._entries],
            self._history_bias,
        )

    def cross_attend(self, layer: int, query: Tensor) -> Tensor:
        """Attend from the new token of each hypothesis to the source of its sentence.

        Args:
            layer: The number of the decoder layer, from 0.
            query: The queries of the new tokens, one for each hypothesis of each sentence,
                (hypotheses, heads x key_dim).

        Returns:
            The weighted sums of the source's values, (hypotheses, heads x value_dim).
        """
        key, value = self._source[layer]
        if self._library is not None:
            # There are no new keys and values to store.
            return self._attend_natively(query, None, None, key, value, self._is_source)
        heads = key.size(1)
        return self._attend(self._by_sentence(query, heads), key, value, self._source_bias)

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "KVCache":
        """Keep the hypotheses that a search continues; this changes the cache and returns it.

        Moving keys and values would take longer than attention itself. Instead, each hypothesis
        gets a copy of its parent's history, which says to which stored tokens it attends. Finished
        sentences stay in the tensors until they are more than half of the stored sentences.

        Args:
            hypotheses: The hypotheses to keep, as indices into the hypotheses of all sentences.
                Each sentence keeps equally many. An index may occur twice.
            sentences: The sentences to keep, as indices into the current sentences; None keeps
                all.
        """
        if sentences is not None:
            # Without `_rows`, a sentence's number is its row.
            self._rows = sentences if self._rows is None else self._rows[sentences]
            self._sentences = len(sentences)
            if self._sentences < _MIN_SHARE_IN_USE * self._stored_sentences:
                self._keep_rows(self._rows)
        history = self._history.flatten(0, 1)[hypotheses]
        # `max` avoids a division by 0 when all sentences are finished.
        beam = len(hypotheses) // max(1, self._sentences)
        self._history = history.view(self._sentences, beam, self._entries)
        return self

    def _add_layer(self, like: Tensor, heads: int, key_size: int, value_size: int) -> None:
        """Add tensors for the keys and values of one more decoder layer, without entries yet.

        Args:
            like: A tensor whose type and device the new tensors get.
            heads: The number of heads.
            key_size: The size of a head's key.
            value_size: The size of a head's value.
        """
        keys = like.new_empty(self._stored_sentences, heads, 0, key_size)
        values = like.new_empty(self._stored_sentences, heads, 0, value_size)
        self._target.append((keys, values))

    def _keep_rows(self, rows: Tensor) -> None:
        """Remove finished sentences from the stored tensors, by copying the rows of the others.

        Args:
            rows: The rows of the sentences to keep, (sentences,). They become rows 0, 1, and so on.
        """
        self._source = [(key[rows], value[rows]) for key, value in self._source]
        if self._source_bias is not None:
            self._source_bias = self._source_bias[rows]
        self._is_source = self._is_source[rows]
        used = slice(self._entries)  # The tensors also have capacity for further entries.
        self._target = [(key[rows, :, used], value[rows, :, used]) for key, value in self._target]
        self._rows = None  # From now on, row i is sentence i.
        self._stored_sentences = len(rows)

    def _compact_entries(self) -> None:
        """Remove the tokens of hypotheses that the search has dropped, if these are the majority.

        An entry is the key and the value of one token of one hypothesis. It is in use if it belongs
        to the history of any present hypothesis.
        """
        is_used = self._history.any(dim=1)  # (sentences, entries)
        # All sentences must have equally many entries: as many as the sentence that uses most.
        used_entries = int(is_used.sum(dim=1).max())
        if used_entries < _MIN_SHARE_IN_USE * self._entries:
            self._keep_entries(is_used, used_entries)
        self._next_compaction = max(_FIRST_COMPACTION, 2 * used_entries)

    def _keep_entries(self, is_used: Tensor, count: int) -> None:
        """Keep the entries that are used, in their order, and remove the others.

        An entry is the key and the value of one token of one hypothesis.

        Args:
            is_used: Which entries some hypothesis of their sentence uses, (sentences, entries).
            count: The number of entries to keep of each sentence, as many as the sentence that uses
                most. A sentence that uses fewer also keeps some unused ones.
        """
        if self._rows is not None:
            self._keep_rows(self._rows)  # From now on, row i is sentence i.
        # A stable sort puts the used entries first, and leaves them in their order.
        used_first = is_used.byte().argsort(dim=1, descending=True, stable=True)
        kept = used_first[:, :count]
        # Together with `kept`, it selects other entries for each sentence, (sentences, 1).
        sentences = torch.arange(len(kept), device=kept.device)[:, None]
        target = []
        for key, value in self._target:
            # With a slice between two index tensors, torch puts the indexed dimensions first:
            # (sentences, entries, heads, key_dim). `transpose` puts the heads before the entries.
            kept_keys = key[sentences, :, kept].transpose(1, 2)
            kept_values = value[sentences, :, kept].transpose(1, 2)
            target.append((kept_keys, kept_values))
        self._target = target
        self._history = self._history[sentences, :, kept].transpose(1, 2)
        self._entries = count

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """Group queries, keys or values by sentence and head.

        Args:
            x: Queries, keys or values of the hypotheses of all sentences, with the heads side by
                side, (hypotheses, heads x key_dim).
            heads: The number of heads.

        Returns:
            A view of them, (sentences, heads, beam, key_dim), where `beam` is the number of
            hypotheses of a sentence.
        """
        return x.view(self._sentences, -1, heads, x.size(1) // heads).transpose(1, 2)

    def _with_capacity(self, stored: Tensor, new_entries: int) -> Tensor:
        """Return stored keys or values in a tensor that has space for the current step's entries.

        Like a list in Python, a full tensor is replaced by a copy of about twice the size, so that
        few steps have to copy it. If it has space, it is returned itself.

        Args:
            stored: Keys or values, (stored_sentences, heads, capacity, key_dim).
            new_entries: How many entries the current step adds to each sentence. `_entries` counts
                them, but they are not stored yet.
        """
        if stored.size(2) >= self._entries:
            return stored
        capacity = 2 * self._entries + _EXTRA_CAPACITY
        larger = stored.new_empty(*stored.shape[:2], capacity, stored.size(3))
        old_entries = slice(self._entries - new_entries)
        larger[:, :, old_entries] = stored[:, :, old_entries]
        return larger

    def _attend_natively(
        self,
        query: Tensor,
        new_keys: Tensor | None,
        new_values: Tensor | None,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
    ) -> Tensor:
        """Attend from the new token of each hypothesis to stored keys and values, by C++.

        In self-attention, C++ also stores the new keys and values at the end of the stored ones.

        Args:
            query: The queries of the new tokens, one for each hypothesis of each sentence,
                (hypotheses, heads x key_dim).
            new_keys: The keys of the new tokens, (hypotheses, heads x key_dim); or None.
            new_values: Their values, (hypotheses, heads x value_dim); or None.
            keys: The stored keys, (stored sentences, heads, capacity, key_dim). Only the first
                positions are in use. Finished sentences may still be stored.
            values: The stored values, (stored sentences, heads, capacity, value_dim).
            mask: True at the positions to attend to. In self-attention: the tokens of each
                hypothesis, (sentences, hypotheses of a sentence, positions in use). In attention to
                the source: the positions without padding, (stored sentences, source length).

        Returns:
            The weighted sums of the values, (hypotheses, heads x value_dim).
        """
        assert self._library is not None
        _, heads, capacity, key_dim = keys.shape
        value_dim = values.size(3)
        # How many elements the hypotheses are apart in each tensor; not read if it is None.
        query_stride = query.stride(0)
        key_stride = 0 if new_keys is None else new_keys.stride(0)
        value_stride = 0 if new_values is None else new_values.stride(0)
        # Without `_rows`, sentence i is in row i.
        rows = torch.arange(self._sentences) if self._rows is None else self._rows
        weighted_sums = keys.new_empty(len(query), heads * value_dim)
        arguments = [
            query,
            new_keys,
            new_values,
            query_stride,
            key_stride,
            value_stride,
            keys,
            values,
            capacity,
            rows,  # The row of each sentence in `keys` and `values`.
            mask.contiguous(),
            self._sentences,
            len(query) // self._sentences,  # The hypotheses of a sentence.
            heads,
            key_dim,
            value_dim,
            mask.size(-1),  # The positions in use.
            weighted_sums,  # Written by C++.
        ]
        self._library.attend(*native.c_arguments(*arguments))
        return weighted_sums

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Attend from the new token of each hypothesis to stored keys and values, by torch.

        Args:
            query: The queries of the new tokens, (sentences, heads, hypotheses of a sentence,
                key_dim).
            key: The stored keys, (stored sentences, heads, keys, key_dim). Finished sentences may
                still be stored.
            value: The stored values, (stored sentences, heads, keys, value_dim).
            bias: What is added to the scores of attention, -inf at keys that must get no weight,
                (stored sentences, heads, hypotheses of a sentence or 1, keys); or None.

        Returns:
            The weighted sums of the values, (hypotheses of all sentences, heads x value_dim).
        """
        if self._rows is not None:
            # Finished sentences are still stored. To leave them out, the keys of the others would
            # have to be copied. It is faster to give them queries of 0 and to drop their results.
            query_of_rows = query.new_zeros(self._stored_sentences, *query.shape[1:])
            query = query_of_rows.index_copy_(0, self._rows, query)
        weighted_sums = _attention(query, key, value, bias)
        if self._rows is not None:
            weighted_sums = weighted_sums[self._rows]
        # Put the heads of a hypothesis side by side, and join the first two dimensions.
        return weighted_sums.transpose(1, 2).flatten(2).flatten(0, 1)


def _mask_to_bias(mask: Tensor, key: Tensor) -> Tensor:
    """Turn a mask into numbers that attention adds to its scores before the softmax.

    They are 0 where the mask is True, and -inf elsewhere, which makes the attention weight 0.

    Args:
        mask: True at keys that a query may attend to, (sentences, 1, queries, keys), for all heads.
            `queries` is 1 if the mask is the same for all queries.
        key: The keys, (sentences, heads, ...). Only their type, device and number of heads are
            used, which the result gets.

    Returns:
        The numbers to add, (sentences, heads, queries, keys).
    """
    bias = torch.zeros(mask.shape, dtype=key.dtype, device=key.device)
    bias = bias.masked_fill_(~mask, -torch.inf)
    return bias.expand(-1, key.size(1), -1, -1).contiguous()


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Compute softmax(query x key^T / sqrt(key_dim) + bias) x value (section 3.2.1).

    torch's fused kernel for this is a third slower for few queries.

    Args:
        query: The queries, (sentences, heads, queries, key_dim).
        key: The keys, (sentences, heads, keys, key_dim).
        value: The values, (sentences, heads, keys, value_dim).
        bias: What is added to the scores, (sentences, heads, queries or 1, keys); or None.

    Returns:
        The weighted sums of the values, (sentences, heads, queries, value_dim).
    """
    # `bmm` multiplies many pairs of matrices: here a pair for each head of each sentence.
    queries = query.flatten(0, 1)
    keys = key.flatten(0, 1)
    values = value.flatten(0, 1)
    scale = query.size(-1) ** -0.5
    if bias is None:
        scores = torch.bmm(queries, keys.transpose(1, 2)).mul_(scale)
    else:
        scores = torch.baddbmm(bias.flatten(0, 1), queries, keys.transpose(1, 2), alpha=scale)
    return torch.bmm(scores.softmax(-1), values).view(*query.shape[:-1], -1)
