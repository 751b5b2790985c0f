"""What a decoder remembers between the words of an output, so that each is computed once.

Shapes: B sentences, N hypotheses, as many for each sentence (W) and together; H heads, K d_k
(values have d_v), S source positions, E entries of a sentence, one for each word of each
hypothesis; R the sentences remembered, B or more.
"""

import torch
from torch import Tensor

# Once less than this share of the sentences remembered is still translated, the rest is dropped;
# so are entries, looked through at the first so many and at each double of what was kept.
_WORTH_KEEPING = 0.5
_ENTRIES = 32


class Cache:
    """The keys and values of each decoder layer: those of the source, those of the words so far.

    They are written once and stay where they are. A beam's hypotheses come and go at each word,
    and to copy theirs each time takes longer than attention itself; here a hypothesis reads the
    entries of all hypotheses its sentence ever had, under a bias that lets through its own words.
    Of words long past the hypotheses mostly share one: what none goes on from any more is dropped
    now and then.
    """

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """`source`: keys (B, H, S, K) and values (B, H, S, d_v) by layer; `mask` (B, 1, 1, S)."""
        self.position = -1
        self._source = [(key.contiguous(), value.contiguous()) for key, value in source]
        key = source[0][0]
        self._mask = None if mask is None else _bias(mask, key)
        # the rows that the sentences have in what is remembered; None: the same
        self._rows: Tensor | None = None
        self._remembered = self._sentences = key.size(0)
        self._words: list[tuple[Tensor, Tensor]] = []
        self._entries, self._crowded = 0, _ENTRIES
        # whose words each hypothesis goes on: (B, W, E)
        self._own = torch.ones(key.size(0), 1, 0, dtype=torch.bool, device=key.device)
        self._bias = key  # that of the word begun: (R, H, W, E)

    def begin(self, hypotheses: int) -> None:
        """Go on to the next word, of N hypotheses."""
        self.position += 1
        if self._entries >= self._crowded:
            self._drop_entries()
        each = hypotheses // self._sentences
        new = torch.eye(each, dtype=torch.bool, device=self._own.device)
        self._own = torch.cat((self._own, new.expand(self._sentences, -1, -1)), dim=2)
        self._entries += each
        own = self._own
        if self._rows is not None:
            # what is not translated any more may read anything, but something
            own = own.new_ones(self._remembered, *own.shape[1:]).index_copy_(0, self._rows, own)
        self._bias = _bias(own[:, None], self._source[0][0])

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Self-attention of the word begun: queries, keys (N, H x K), values (N, H x d_v).

        Gives (N, H x d_v).
        """
        heads = self._source[layer][0].size(1)
        query, key, value = (self._by_sentence(x, heads) for x in (query, key, value))
        if layer == len(self._words):
            none = (x.new_empty(self._remembered, heads, 0, x.size(3)) for x in (key, value))
            self._words.append((next(none), next(none)))
        keys, values = self._words[layer]
        self._words[layer] = keys, values = self._written(keys, key), self._written(values, value)
        now = slice(self._entries)
        return self._mixed(query, keys[:, :, now], values[:, :, now], self._bias)

    def read(self, layer: int, query: Tensor) -> Tensor:
        """Attention of queries (N, H x K) to their sources, (N, H x d_v)."""
        key, value = self._source[layer]
        return self._mixed(self._by_sentence(query, key.size(1)), key, value, self._mask)

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "Cache":
        """Go on with these hypotheses, of these sentences; it changes and gives this cache.

        Both are rows as they are now. Each sentence has as many hypotheses, together.
        """
        if sentences is not None:
            self._rows = sentences if self._rows is None else self._rows[sentences]
            self._sentences = len(sentences)
            if self._sentences < _WORTH_KEEPING * self._remembered:
                self._drop_others(self._rows)
        own = self._own.flatten(0, 1)[hypotheses]
        each = len(hypotheses) // max(1, self._sentences)
        self._own = own.view(self._sentences, each, self._entries)
        return self

    def _drop_others(self, rows: Tensor) -> None:
        self._source = [(key[rows], value[rows]) for key, value in self._source]
        self._mask = None if self._mask is None else self._mask[rows]
        now = slice(self._entries)
        self._words = [(key[rows, :, now], value[rows, :, now]) for key, value in self._words]
        self._rows, self._remembered = None, len(rows)

    def _drop_entries(self) -> None:
        """Keep of each sentence the entries that a hypothesis goes on from, in their order."""
        used = self._own.any(dim=1)
        most = int(used.sum(dim=1).max())
        if most < _WORTH_KEEPING * self._entries:
            if self._rows is not None:
                self._drop_others(self._rows)
            kept = used.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
            sentences = torch.arange(len(kept), device=kept.device)[:, None]
            self._words = [
                (key.transpose(1, 2)[sentences, kept], value.transpose(1, 2)[sentences, kept])
                for key, value in self._words
            ]
            self._words = [(k.transpose(1, 2), v.transpose(1, 2)) for k, v in self._words]
            self._own = self._own.transpose(1, 2)[sentences, kept].transpose(1, 2)
            self._entries = most
        self._crowded = max(_ENTRIES, 2 * most)

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """(N, H x K) as (B, H, W, K)."""
        return x.view(self._sentences, -1, heads, x.size(1) // heads).transpose(1, 2)

    def _written(self, memory: Tensor, new: Tensor) -> Tensor:
        """Memory (R, H, E or more, K) with `new`, the last of its entries; larger if needed."""
        start = self._entries - new.size(2)
        if memory.size(2) < self._entries:
            room = memory.new_empty(*memory.shape[:2], 2 * self._entries + 8, memory.size(3))
            room[:, :, :start] = memory[:, :, :start]
            memory = room
        rows = slice(None) if self._rows is None else self._rows
        memory[rows, :, start : self._entries] = new
        return memory

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """What queries (B, H, W, K) take of values (R, H, E or S, d_v): (N, H x d_v)."""
        if self._rows is not None:
            all_rows = query.new_zeros(self._remembered, *query.shape[1:])
            query = all_rows.index_copy_(0, self._rows, query)
        mixed = _attention(query, key, value, bias)
        if self._rows is not None:
            mixed = mixed[self._rows]
        return mixed.transpose(1, 2).flatten(2).flatten(0, 1)


def _bias(mask: Tensor, like: Tensor) -> Tensor:
    """0 where the mask (R, 1, ..., E or S) is True, minus infinity elsewhere, for each head."""
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    bias = bias.masked_fill_(~mask, -torch.inf)
    return bias.expand(-1, like.size(1), -1, -1).contiguous()


def _attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
    """Softmax(queries x keys / sqrt(K) + bias) x values (section 3.2.1), for (R, H, ..., ...).

    torch's fused kernel is a third slower for so few queries.
    """
    queries, keys, values = query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1)
    scale = query.size(-1) ** -0.5
    if bias is None:
        logits = torch.bmm(queries, keys.transpose(1, 2)).mul_(scale)
    else:
        logits = torch.baddbmm(bias.flatten(0, 1), queries, keys.transpose(1, 2), alpha=scale)
    return torch.bmm(logits.softmax(-1), values).view(*query.shape[:-1], -1)
