"""A batch of sentence pairs, as token ids and as padded tensors.

`PackedBatch` in packed_batch.py is the form without padding, for GPUs.
"""

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

# The token ids of one sentence.
Sentence = NDArray[Any] | list[int]


class PairIds(NamedTuple):
    """Sentence pairs as token ids; each sentence ends in EOS.

    Attributes:
        source: The source sentences.
        target: The target sentences, in the same order.
    """

    source: list[Sentence]
    target: list[Sentence]

    def lengths(self) -> NDArray[np.int64]:
        """Return the lengths of source and target of each pair, EOS included, (pairs, 2)."""
        source_lengths = list(map(len, self.source))
        target_lengths = list(map(len, self.target))
        # The transpose makes columns of them; in memory, each column stays in one piece.
        return np.array([source_lengths, target_lengths]).T


def read_ids(corpus: BinaryCorpus, name: str, rows: Indices) -> PairIds:
    """Read the token ids of some sentence pairs of a corpus.

    Args:
        corpus: The corpus.
        name: The name of the set, such as `train`.
        rows: The indices of the pairs in the set, in the order to return them.
    """
    source_sentences = corpus.side(name, corpus.source)
    target_sentences = corpus.side(name, corpus.target)
    indices = rows.tolist()
    return PairIds(
        source=[source_sentences[index] for index in indices],
        target=[target_sentences[index] for index in indices],
    )


@dataclass(frozen=True)
class Batch:
    """The padded tensors of a batch of sentence pairs.

    All attributes are computed on the CPU before the batch is moved to an accelerator, because
    reading a value from an accelerator means waiting for it.

    Attributes:
        source: The source token ids, (pairs, source_len), filled up with PAD.
        target: The decoder's input, (pairs, target_len): BOS and the target without its EOS.
        labels: The tokens to predict, (labels,), in the order of the flattened target: EOS is among
            them, PAD is not.
        label_positions: The positions in the flattened target (pairs x target_len) whose outputs
            predict the labels, (labels,).
        lengths: The lengths of source and target of each pair, EOS included, (pairs, 2).
        has_padding: Whether the source contains PAD.
    """

    source: Tensor
    target: Tensor
    labels: Tensor
    label_positions: Tensor
    lengths: NDArray[np.int64]
    has_padding: bool

    @classmethod
    def from_ids(cls, pairs: PairIds, pin_memory: bool = False) -> "Batch":
        """Create the batch of some sentence pairs: the model's input, and the tokens to predict.

        Args:
            pairs: The sentence pairs as token ids; each sentence ends in EOS.
            pin_memory: Whether to use page-locked memory, from which a GPU copies asynchronously.
        """
        source = pad(pairs.source)
        padded_labels = pad(pairs.target)
        bos_column = torch.full((len(padded_labels), 1), BOS)
        # The decoder reads BOS and then the label of the position before: for the labels `a b EOS`
        # it reads `BOS a b`. A sentence that is shorter than the longest one also has EOS as an
        # input, but the label of that position is PAD, which is not trained on.
        target = torch.cat((bos_column, padded_labels[:, :-1]), dim=1)
        flat_labels = padded_labels.flatten()
        is_token = flat_labels.ne(PAD)
        label_positions = is_token.nonzero().flatten()
        batch = cls(
            source=source,
            target=target,
            labels=flat_labels[label_positions],
            label_positions=label_positions,
            lengths=pairs.lengths(),
            has_padding=bool((source == PAD).any()),
        )
        return batch._map(Tensor.pin_memory) if pin_memory else batch

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device; the copy is asynchronous."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Batch":
        """Apply a function to each tensor of the batch, and return the results as a new batch.

        Args:
            function: The function, such as `Tensor.pin_memory`.
        """
        return Batch(
            source=function(self.source),
            target=function(self.target),
            labels=function(self.labels),
            label_positions=function(self.label_positions),
            lengths=self.lengths,
            has_padding=self.has_padding,
        )


def pad(sentences: Sequence[Sentence]) -> Tensor:
    """Put the token ids of sentences into one tensor; shorter sentences are filled up with PAD.

    Returns:
        The tensor, (sentences, length of the longest sentence).
    """
    longest = max(map(len, sentences))
    padded = np.full((len(sentences), longest), PAD, dtype=np.int64)
    for row, ids in enumerate(sentences):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded)
