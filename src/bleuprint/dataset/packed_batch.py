"""A batch of sentence pairs without padding between them, for GPUs (model/layout.py).

Rows and sentences are filled up to few numbers by further sentences of PAD, since kernels are
compiled, and graphs of them recorded, for each shape.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bleuprint.dataset.batch import Batch, PairIds, Sentence
from bleuprint.dataset.subwords.vocabulary import BOS, PAD

# Numbers of rows and of sentences have this many significant bits: at most 1 / 16 and 1 / 2 more.
# Of 400,000 pairs with lengths like WMT14's 3 % of the rows are padding; batches of 3,400, 13,000
# and 25,000 tokens have 300, 183 and 138 shapes.
_ROW_BITS, _SENTENCE_BITS = 5, 2
# Flash attention computes this many positions at once; programs of our kernels end beyond a length.
_BLOCK = 128


class PackedSide(NamedTuple):
    """One side: `ids` (R,), their `positions` (R,), and the `offsets` (B + 1,) of sentences."""

    ids: Tensor
    positions: Tensor
    offsets: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """Source and target, which begins with BOS, and `labels` (R,), the tokens to predict or PAD.

    `longest`: a bound of all lengths. `lengths` (pairs, 2) are those of each pair, EOS included,
    without the sentences of PAD.
    """

    source: PackedSide
    target: PackedSide
    labels: Tensor
    longest: int
    lengths: NDArray[np.int64]

    @classmethod
    def from_ids(cls, pairs: PairIds, pin_memory: bool = False) -> Self:
        """`pin_memory`: in page-locked memory, which a GPU copies from asynchronously."""
        lengths = np.array([list(map(len, side)) for side in pairs]).T
        rows, more = _filled(lengths)
        sides = [_pack(side, count, more) for side, count in zip(pairs, rows.tolist(), strict=True)]
        source, labels = sides
        starts = labels.offsets[:-1].long()
        inputs = labels.ids.roll(1)
        inputs[starts] = torch.where(labels.ids[starts] == PAD, PAD, BOS)
        most = max(int(side.offsets.diff().max()) for side in sides)
        bound = -(-most // _BLOCK) * _BLOCK
        batch = cls(source, labels._replace(ids=inputs), labels.ids, bound, lengths)
        return batch.map(Tensor.pin_memory) if pin_memory else batch

    @property
    def shape(self) -> tuple[int, ...]:
        """What a recorded graph of kernels depends on."""
        return (*map(len, self.tensors), self.longest)

    def to(self, device: torch.device) -> Self:
        """The batch on a device; the copy is asynchronous."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """The batch with a function applied to its tensors."""
        source, target = (PackedSide(*map(function, side)) for side in (self.source, self.target))
        return replace(self, source=source, target=target, labels=function(self.labels))

    @property
    def tensors(self) -> list[Tensor]:
        return [*self.source, *self.target, self.labels]


def _filled(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The rows of each side, and the sentences of PAD, at least one row and one of them."""
    tokens, longest = lengths.sum(0), int(lengths.max())
    rows = _round_up(tokens + 1, _ROW_BITS)
    more = int((-(-(rows - tokens) // longest)).max())
    more = int(_round_up(np.array(len(lengths) + more), _SENTENCE_BITS)) - len(lengths)
    return np.maximum(rows, _round_up(tokens + more, _ROW_BITS)), more


def _round_up(numbers: NDArray[np.int64], bits: int) -> Any:
    """Round up to numbers of at most `bits` significant bits."""
    steps = 1 << np.maximum(0, np.frexp(numbers)[1] - bits).astype(np.int64)
    return -(-numbers // steps) * steps


def _pack(sentences: list[Sentence], rows: int, more: int) -> PackedSide:
    """The sentences and `more` of PAD, `rows` tokens in all."""
    filling = rows - sum(map(len, sentences))
    lengths = [*map(len, sentences), *(len(x) for x in np.array_split(np.empty(filling), more))]
    ids = np.full(rows, PAD, np.int64)
    ids[: rows - filling] = np.concatenate(sentences)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    positions = np.arange(rows) - np.repeat(offsets[:-1], lengths)
    positions[rows - filling :] = 0  # none beyond the model's
    return PackedSide(*map(torch.from_numpy, (ids, positions, offsets)))


# What a model is trained on.
TrainingBatch: TypeAlias = Batch | PackedBatch
