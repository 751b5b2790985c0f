"""A batch of sentence pairs: read, and as tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bleuprint.dataset.batching import Indices
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import BOS, PAD

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
    """Sentences as the model takes them: source (B, S), and target (B, T) that begins with BOS.

    `wanted` (N,) are the words to come, EOS included and padding not, after the positions `places`
    (N,) of the target, counted through all B x T. `lengths` are those of each pair, EOS included;
    `padded` tells if there is PAD in the source. All this is found out before the batch is on an
    accelerator, where asking would mean waiting for it.
    """

    source: Tensor
    target: Tensor
    wanted: Tensor
    places: Tensor
    lengths: list[tuple[int, int]]
    padded: bool

    @classmethod
    def of(cls, sides: Sides, pinned: bool = False) -> "Batch":
        """`pinned`: in memory that a GPU reads from by itself."""
        lengths = list(zip(map(len, sides.source), map(len, sides.target), strict=True))
        source, words = pad(sides.source), pad(sides.target)
        begin = torch.full((len(words), 1), BOS)
        # BOS in front, the last column away: padding stays padding, EOS is never an input
        target = torch.cat((begin, words[:, :-1]), dim=1)
        words = words.flatten()
        places = words.ne(PAD).nonzero().flatten()
        padded = bool((source == PAD).any())
        batch = cls(source, target, words[places], places, lengths, padded)
        return batch._with(Tensor.pin_memory) if pinned else batch

    def to(self, device: torch.device) -> "Batch":
        """The batch on a device; what is queued there may have to wait for it, we do not."""
        return self._with(lambda tensor: tensor.to(device, non_blocking=True))

    def _with(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with a function applied to its tensors."""
        return Batch(
            function(self.source),
            function(self.target),
            function(self.wanted),
            function(self.places),
            self.lengths,
            self.padded,
        )


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Sentences as one tensor (B, longest), filled up with PAD."""
    result = np.full((len(sentences), max(map(len, sentences))), PAD, dtype=np.int64)
    for row, ids in enumerate(sentences):
        result[row, : len(ids)] = ids
    return torch.from_numpy(result)
