"""Keys and values of earlier decoding steps, so that each position is computed once.

Shapes: B sentences still being decoded, W hypotheses a sentence (the same for all), N = B x W
hypotheses in all; H heads, K d_k (values have d_v), S source positions, E entries a sentence (one
for each step of each hypothesis), R rows stored, at least B.
"""

import ctypes

import torch
from torch import Tensor

from bleuprint import native
from bleuprint.model.arithmetic import is_portable

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
        self._library = _library(*source[0])
        # the source positions that are no padding, by stored row (R, S)
        seen = key.new_ones(len(key), key.size(2), dtype=torch.bool)
        self._seen = seen if mask is None else mask[:, 0, 0].contiguous()

    def advance(self, hypotheses: int) -> None:
        """Start the next step, for N hypotheses."""
        self.position += 1
        if self._entries >= self._compact_at:
            self._compact_entries()
        width = hypotheses // self._sentences
        new = torch.eye(width, dtype=torch.bool, device=self._history.device)
        self._history = torch.cat((self._history, new.expand(self._sentences, -1, -1)), dim=2)
        self._entries += width
        if self._library is not None:
            return
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
        if layer == len(self._target):
            sizes = (x.size(1) // heads for x in (key, value))
            empty = (query.new_empty(self._stored, heads, 0, size) for size in sizes)
            self._target.append((next(empty), next(empty)))
        width = len(query) // self._sentences
        keys, values = (self._with_room(each, width) for each in self._target[layer])
        self._target[layer] = keys, values
        if self._library is not None:
            return self._attend_natively((query, key, value), keys, values, self._history)
        query, key, value = (self._by_sentence(x, heads) for x in (query, key, value))
        rows = slice(None) if self._rows is None else self._rows
        new = slice(self._entries - width, self._entries)
        keys[rows, :, new], values[rows, :, new] = key, value
        used = slice(self._entries)
        return self._attend(query, keys[:, :, used], values[:, :, used], self._bias)

    def cross_attend(self, layer: int, query: Tensor) -> Tensor:
        """Attention of queries (N, H x K) to the source; returns (N, H x d_v)."""
        key, value = self._source[layer]
        if self._library is not None:
            return self._attend_natively((query, None, None), key, value, self._seen)
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
        self._seen = self._seen[rows]
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

    def _with_room(self, memory: Tensor, new: int) -> Tensor:
        """`memory` (R, H, E or more, K) with room for `new` entries; if full, a larger copy."""
        if memory.size(2) >= self._entries:
            return memory
        larger = memory.new_empty(*memory.shape[:2], 2 * self._entries + 8, memory.size(3))
        old = slice(self._entries - new)
        larger[:, :, old] = memory[:, :, old]
        return larger

    def _attend_natively(
        self, projected: tuple[Tensor | None, ...], keys: Tensor, values: Tensor, seen: Tensor
    ) -> Tensor:
        """`_attend` by native/search.cpp, which stores new keys and values first.

        `projected`: queries (N, H x K), new keys and values, or None. `seen`: which entries count,
        (B, W, E), or (R, S) of the source.
        """
        assert self._library is not None and projected[0] is not None
        (_, heads, room, d_k), d_v, count = keys.shape, values.size(3), len(projected[0])
        rows = torch.arange(self._sentences) if self._rows is None else self._rows
        result = keys.new_empty(count, heads * d_v)
        strides = (0 if each is None else each.stride(0) for each in projected)
        sizes = self._sentences, count // self._sentences, heads, d_k, d_v, seen.size(-1)
        given = *projected, *strides, keys, values, room, rows, seen.contiguous(), *sizes, result
        self._library.attend(*native.c_arguments(*given))
        return result

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Attention of queries (B, H, W, K) to keys, values (R, H, E or S, ...): (N, H x d_v)."""
        if self._rows is not None:
            all_rows = query.new_zeros(self._stored, *query.shape[1:])
            query = all_rows.index_copy_(0, self._rows, query)
        mixed = _attention(query, key, value, bias)
        if self._rows is not None:
            mixed = mixed[self._rows]
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)


def _library(key: Tensor, value: Tensor) -> ctypes.CDLL | None:
    """The compiled attention, if it can take these; portable arithmetic keeps the bits of torch."""
    on_cpu = key.device.type == "cpu" and key.dtype == torch.float32
    suits = on_cpu and not (key.size(3) % 8 or value.size(3) % 8 or is_portable())
    return native.library() if suits else None


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
