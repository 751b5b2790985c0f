"""A batch of sentence pairs, as ids and as tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bleuprint.dataset.batching import Indices
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import BOS, PAD

Sentence = NDArray[Any] | list[int]


class PairIds(NamedTuple):
    """Sentence pairs as ids; each sentence ends in EOS."""

    source: list[Sentence]
    target: list[Sentence]


def read_ids(corpus: BinaryCorpus, name: str, rows: Indices) -> PairIds:
    """Read these pairs of the set `name`."""
    source, target = (corpus.side(name, language) for language in (corpus.source, corpus.target))
    indices = rows.tolist()
    return PairIds([source[row] for row in indices], [target[row] for row in indices])


@dataclass(frozen=True)
class Batch:
    """The tensors that the model trains on: source (B, S), and target (B, T) that begins with BOS.

    `labels` (N,) are the tokens to predict, with EOS and without padding; `label_positions` (N,)
    are the positions in the flattened target (B x T) that predict them. `lengths` (B, 2) are those
    of each pair, EOS included. `has_padding`: whether the source contains PAD. All are computed
    before the batch is moved, since reading from an accelerator means waiting for it.
    """

    source: Tensor
    target: Tensor
    labels: Tensor
    label_positions: Tensor
    lengths: NDArray[np.int64]
    has_padding: bool

    @classmethod
    def from_ids(cls, pairs: PairIds, pin_memory: bool = False) -> "Batch":
        """`pin_memory`: in page-locked memory, which a GPU copies from asynchronously."""
        lengths = np.array([list(map(len, side)) for side in pairs]).T
        source, labels = pad(pairs.source), pad(pairs.target)
        bos = torch.full((len(labels), 1), BOS)
        # BOS in front, the last column removed: padding stays padding, EOS is never an input
        target = torch.cat((bos, labels[:, :-1]), dim=1)
        labels = labels.flatten()
        positions = labels.ne(PAD).nonzero().flatten()
        has_padding = bool((source == PAD).any())
        batch = cls(source, target, labels[positions], positions, lengths, has_padding)
        return batch._map(Tensor.pin_memory) if pin_memory else batch

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; the copy is asynchronous."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with a function applied to its tensors."""
        tensors = {name: each for name, each in vars(self).items() if isinstance(each, Tensor)}
        return replace(self, **{name: function(each) for name, each in tensors.items()})  # type: ignore[arg-type]


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Sentences as one tensor (B, longest), filled up with PAD."""
    result = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, ids in enumerate(sentences):
        result[row, : len(ids)] = ids
    return torch.from_numpy(result)
