"""What a decoder remembers between the words of an output, so that each is computed once.

Shapes: B sentences, N hypotheses, as many for each sentence and together; H heads, K d_k (values
have d_v), S source positions, E entries of a sentence, one for each word of each hypothesis.
"""

import torch
from torch import Tensor
from torch.nn import functional

# Once less than this share of the sentences remembered is still translated, the rest is dropped.
_WORTH_KEEPING = 0.75


class Cache:
    """The keys and values of each decoder layer: those of the source, those of the words so far.

    They are written once and stay where they are. A beam's hypotheses come and go at each word,
    and to copy theirs each time takes longer than attention itself; here a hypothesis reads the
    entries of all hypotheses its sentence ever had, under a mask that lets through its own words.
    """

    def __init__(self, source: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> None:
        """`source`: keys (B, H, S, K) and values (B, H, S, d_v) by layer; `mask` (B, 1, 1, S)."""
        self.position = -1
        self._source, self._mask = source, mask
        key = source[0][0]
        # the rows that the sentences have in what is remembered; None: the same
        self._rows: Tensor | None = None
        self._remembered = self._sentences = key.size(0)
        self._words: list[tuple[Tensor, Tensor]] = []
        self._entries = 0
        # whose words each hypothesis goes on: (B, hypotheses of each, E)
        self._own = torch.ones(key.size(0), 1, 0, dtype=torch.bool, device=key.device)
        self._bias = key  # 0 where `_own`, elsewhere minus infinity, for the rows remembered

    def begin(self, hypotheses: int) -> None:
        """Go on to the next word, of N hypotheses."""
        self.position += 1
        each = hypotheses // self._sentences
        new = torch.eye(each, dtype=torch.bool, device=self._own.device)
        self._own = torch.cat((self._own, new.expand(self._sentences, -1, -1)), dim=2)
        self._entries += each
        own = self._own
        if self._rows is not None:
            # what is not translated any more may read anything, but something
            own = own.new_ones(self._remembered, *own.shape[1:]).index_copy_(0, self._rows, own)
        key = self._source[0][0]
        bias = torch.zeros(own.shape, dtype=key.dtype, device=key.device)
        self._bias = bias.masked_fill_(~own, -torch.inf)[:, None]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Self-attention of the word begun: queries, keys (N, H x K), values (N, H x d_v).

        Gives (N, H x d_v).
        """
        heads = self._source[layer][0].size(1)
        query, key, value = (self._by_sentence(x, heads) for x in (query, key, value))
        if layer == len(self._words):
            none = (x.new_empty(self._remembered, 0, *x.shape[2:]) for x in (key, value))
            self._words.append((next(none), next(none)))
        keys, values = self._words[layer]
        self._words[layer] = keys, values = self._written(keys, key), self._written(values, value)
        now = slice(self._entries)
        return self._mixed(
            query, keys[:, now].transpose(1, 2), values[:, now].transpose(1, 2), self._bias
        )

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
        seen = slice(self._entries)
        self._words = [(key[rows, seen], value[rows, seen]) for key, value in self._words]
        self._rows, self._remembered = None, len(rows)

    def _by_sentence(self, x: Tensor, heads: int) -> Tensor:
        """(N, H x K) as (B, hypotheses of each, H, K)."""
        return x.view(self._sentences, -1, heads, x.size(1) // heads)

    def _written(self, memory: Tensor, new: Tensor) -> Tensor:
        """Memory (B, E or more, H, K) with `new`, the last of its entries; larger if needed."""
        start = self._entries - new.size(1)
        if memory.size(1) < self._entries:
            room = memory.new_empty(len(memory), 2 * self._entries + 8, *memory.shape[2:])
            room[:, :start] = memory[:, :start]
            memory = room
        rows = slice(None) if self._rows is None else self._rows
        memory[rows, start : self._entries] = new
        return memory

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """What queries (B, hypotheses of each, H, K) take of values: (N, H x d_v)."""
        if self._rows is not None:
            all_rows = query.new_zeros(self._remembered, *query.shape[1:])
            query = all_rows.index_copy_(0, self._rows, query)
        mixed = functional.scaled_dot_product_attention(
            query.transpose(1, 2), key, value, attn_mask=mask
        ).transpose(1, 2)
        if self._rows is not None:
            mixed = mixed[self._rows]
        return mixed.flatten(2).flatten(0, 1)
