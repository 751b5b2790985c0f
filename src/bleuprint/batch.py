"""A batch of sentence pairs: read, as tensors, and its loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bleuprint.batches import Indices
from bleuprint.binary import BinaryCorpus
from bleuprint.loss import Over, smoothed_loss
from bleuprint.model import Transformer
from bleuprint.vocabulary import BOS, PAD

Sentence = NDArray[Any] | list[int]


class Sides(NamedTuple):
    """Sentence pairs as ids; each sentence ends in EOS."""

    source: list[Sentence]
    target: list[Sentence]


def read(corpus: BinaryCorpus, name: str, rows: Indices) -> Sides:
    """These pairs of the set `name`, as they lie there."""
    source, target = (corpus.side(name, language) for language in (corpus.source, corpus.target))
    chosen = rows.tolist()
    return Sides([source[row] for row in chosen], [target[row] for row in chosen])


@dataclass(frozen=True)
class Batch:
    """Sentences as the model takes them: source (B, S), and target (B, T) with BOS and with EOS.

    `lengths` are those of each pair, EOS included.
    """

    source: Tensor
    target: Tensor
    wanted: Tensor
    lengths: list[tuple[int, int]]

    @classmethod
    def of(cls, sides: Sides, pinned: bool = False) -> "Batch":
        """`pinned`: in memory that a GPU reads from by itself."""
        lengths = list(zip(map(len, sides.source), map(len, sides.target), strict=True))
        source, wanted = pad(sides.source), pad(sides.target)
        begin = torch.full((len(wanted), 1), BOS)
        # BOS in front, the last column away: padding stays padding, EOS is never an input
        target = torch.cat((begin, wanted[:, :-1]), dim=1)
        if pinned:
            source, target, wanted = (side.pin_memory() for side in (source, target, wanted))
        return cls(source, target, wanted, lengths)

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; what is queued there may have to wait for it, we do not."""
        sides = (self.source, self.target, self.wanted)
        source, target, wanted = (side.to(device, non_blocking=True) for side in sides)
        return Batch(source, target, wanted, self.lengths)

    def loss(self, model: Transformer, smoothing: float, over: Over = "vocabulary") -> Tensor:
        """The summed label-smoothed loss of the target words; padding is not even projected."""
        hidden = model.decode(self.target, *model.encode(self.source))
        words = self.wanted != PAD
        return smoothed_loss(model.projection(hidden[words]), self.wanted[words], smoothing, over)


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Sentences as one tensor (B, longest), filled up with PAD."""
    result = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, ids in enumerate(sentences):
        result[row, : len(ids)] = ids
    return torch.from_numpy(result)
