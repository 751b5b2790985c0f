"""Keys and values of earlier decoding steps, so that each position is computed once.

Shapes: B sentences still being decoded, W hypotheses a sentence (the same for all), N = B x W
hypotheses in all; H heads, K d_k (values have d_v), S source positions, E entries a sentence (one
for each step of each hypothesis), R rows stored, at least B.
"""

import torch
from torch import Tensor

# Rows and entries are compacted once less than this share of them is in use. Entries are checked
# first at _MIN_ENTRIES, then whenever their number has doubled.
_MIN_SHARE_IN_USE = 0.5
_MIN_ENTRIES = 32


class KVCache:
    """Keys and values of each decoder layer, for the source and for the tokens decoded so far.

    Entries are written once and not moved: copying them at every step, as the beam's hypotheses
    change, takes longer than attention itself. Instead, a hypothesis attends over the entries of
    all hypotheses its sentence has had, with a bias that masks all but its own history. Most
    hypotheses share their older tokens; entries that no hypothesis uses any more are dropped now
    and then.
    """

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """`source`: keys (B, H, S, K) and values (B, H, S, d_v) by layer; `mask` (B, 1, 1, S)."""
        self.position = -1
        self._source = [(key.contiguous(), value.contiguous()) for key, value in source]
        key = source[0][0]
        self._mask = None if mask is None else _bias(mask, key)
        # the stored row of each sentence (B,); None: row i is sentence i
        self._rows: Tensor | None = None
        self._stored = self._sentences = key.size(0)
        self._target: list[tuple[Tensor, Tensor]] = []
        self._entries, self._compact_at = 0, _MIN_ENTRIES
        # the entries in each hypothesis' history (B, W, E)
        self._history = torch.ones(key.size(0), 1, 0, dtype=torch.bool, device=key.device)
        self._bias = key  # of the current step (R, H, W, E); set by `advance`

    def advance(self, hypotheses: int) -> None:
        """Start the next step, for N hypotheses."""
        self.position += 1
        if self._entries >= self._compact_at:
            self._compact_entries()
        width = hypotheses // self._sentences
        new = torch.eye(width, dtype=torch.bool, device=self._history.device)
        self._history = torch.cat((self._history, new.expand(self._sentences, -1, -1)), dim=2)
        self._entries += width
        history = self._history
        if self._rows is not None:
            # rows not in use must attend to something, or their softmax is NaN
            unused = history.new_ones(self._stored, *history.shape[1:])
            history = unused.index_copy_(0, self._rows, history)
        self._bias = _bias(history[:, None], self._source[0][0])

    def self_attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Self-attention of the current step: queries, keys (N, H x K), values (N, H x d_v).

        Stores the keys and values; returns (N, H x d_v).
        """
        heads = self._source[layer][0].size(1)
        query, key, value = (self._by_sentence(x, heads) for x in (query, key, value))
        if layer == len(self._target):
            empty = (x.new_empty(self._stored, heads, 0, x.size(3)) for x in (key, value))
            self._target.append((next(empty), next(empty)))
        keys, values = self._target[layer]
        self._target[layer] = keys, values = self._append(keys, key), self._append(values, value)
        used = slice(self._entries)
        return self._attend(query, keys[:, :, used], values[:, :, used], self._bias)

    def cross_attend(self, layer: int, query: Tensor) -> Tensor:
        """Attention of queries (N, H x K) to the source; returns (N, H x d_v)."""
        key, value = self._source[layer]
        return self._attend(self._by_sentence(query, key.size(1)), key, value, self._mask)

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "KVCache":
        """Keep these hypotheses, of these sentences (None: of all); changes and returns self.

        Both are indices into the current rows. All sentences have the same number of hypotheses.
        """
        if sentences is not None:
            self._rows = sentences if self._rows is None else self._rows[sentences]
            self._sentences = len(sentences)
            if self._sentences < _MIN_SHARE_IN_USE * self._stored:
                self._compact_rows(self._rows)
        history = self._history.flatten(0, 1)[hypotheses]
        width = len(hypotheses) // max(1, self._sentences)
        self._history = history.view(self._sentences, width, self._entries)
        return self

    def _compact_rows(self, rows: Tensor) -> None:
        self._source = [(key[rows], value[rows]) for key, value in self._source]
        self._mask = None if self._mask is None else self._mask[rows]
        used = slice(self._entries)
        self._target = [(key[rows, :, used], value[rows, :, used]) for key, value in self._target]
        self._rows, self._stored = None, len(rows)

    def _compact_entries(self) -> None:
        """Keep the entries that some hypothesis of their sentence uses, in their order."""
        used = self._history.any(dim=1)
        most = int(used.sum(dim=1).max())
        if most < _MIN_SHARE_IN_USE * self._entries:
            if self._rows is not None:
                self._compact_rows(self._rows)
            kept = used.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
            sentences = torch.arange(len(kept), device=kept.device)[:, None]
            self._target = [
                (k[sentences, :, kept].transpose(1, 2), v[sentences, :, kept].transpose(1, 2))
                for k, v in self._target
            ]
            self._history = self._history[sentences, :, kept].transpose(1, 2)
            self._entries = most
        self._compact_at = max(_MIN_ENTRIES, 2 * most)

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """(N, H x K) as (B, H, W, K)."""
        return x.view(self._sentences, -1, heads, x.size(1) // heads).transpose(1, 2)

    def _append(self, memory: Tensor, new: Tensor) -> Tensor:
        """Write `new` (B, H, W, K) to the last entries of `memory` (R, H, E or more, K).

        Returns `memory`, or a larger copy if it was full.
        """
        start = self._entries - new.size(2)
        if memory.size(2) < self._entries:
            larger = memory.new_empty(*memory.shape[:2], 2 * self._entries + 8, memory.size(3))
            larger[:, :, :start] = memory[:, :, :start]
            memory = larger
        rows = slice(None) if self._rows is None else self._rows
        memory[rows, :, start : self._entries] = new
        return memory

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Attention of queries (B, H, W, K) to keys, values (R, H, E or S, ...): (N, H x d_v)."""
        if self._rows is not None:
            all_rows = query.new_zeros(self._stored, *query.shape[1:])
            query = all_rows.index_copy_(0, self._rows, query)
        mixed = _attention(query, key, value, bias)
        if self._rows is not None:
            mixed = mixed[self._rows]
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)


def _bias(mask: Tensor, like: Tensor) -> Tensor:
    """0 where the mask (R, 1, ..., E or S) is True and -inf elsewhere, repeated for each head."""
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    bias = bias.masked_fill_(~mask, -torch.inf)
    return bias.expand(-1, like.size(1), -1, -1).contiguous()


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(query x key^T / sqrt(K) + bias) x value (section 3.2.1), on (R, H, ..., ...).

    torch's fused kernel is a third slower for few queries.
    """
    queries, keys, values = query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1)
    scale = query.size(-1) ** -0.5
    if bias is None:
        logits = torch.bmm(queries, keys.transpose(1, 2)).mul_(scale)
    else:
        logits = torch.baddbmm(bias.flatten(0, 1), queries, keys.transpose(1, 2), alpha=scale)
    return torch.bmm(logits.softmax(-1), values).view(*query.shape[:-1], -1)
