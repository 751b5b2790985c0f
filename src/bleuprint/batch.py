"""A batch of sentence pairs as tensors, and its loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bleuprint.batches import Indices
from bleuprint.binary import BinaryCorpus
from bleuprint.loss import smoothed_loss
from bleuprint.model import Transformer
from bleuprint.vocabulary import BOS, PAD


@dataclass(frozen=True)
class Batch:
    """Sentences as the model takes them: source (B, S), and target (B, T) with BOS and with EOS."""

    source: Tensor
    target: Tensor
    wanted: Tensor

    @classmethod
    def of(cls, corpus: BinaryCorpus, name: str, rows: Indices, device: torch.device) -> "Batch":
        sources, targets = corpus.side(name, corpus.source), corpus.side(name, corpus.target)
        chosen = rows.tolist()
        wanted = pad([targets[row] for row in chosen])
        begin = torch.full((len(chosen), 1), BOS)
        # BOS in front, the last column away: padding stays padding, EOS is never an input
        target = torch.cat((begin, wanted[:, :-1]), dim=1)
        source = pad([sources[row] for row in chosen])
        return cls(source.to(device), target.to(device), wanted.to(device))

    def loss(self, model: Transformer, smoothing: float) -> Tensor:
        """The summed label-smoothed loss of the target words; padding is not even projected."""
        hidden = model.decode(self.target, *model.encode(self.source))
        words = self.wanted != PAD
        return smoothed_loss(model.projection(hidden[words]), self.wanted[words], smoothing)


def pad(sentences: Sequence[NDArray[Any]]) -> Tensor:
    """Sentences as one tensor (B, longest), filled up with PAD."""
    result = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, ids in enumerate(sentences):
        result[row, : len(ids)] = ids
    return torch.from_numpy(result)
