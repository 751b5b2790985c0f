"""A batch of sentence pairs without padding between the sentences, for GPUs.

The sentences of one side follow each other in one row of token ids; model/layout.py explains how
attention keeps them apart. Kernels are compiled, and CUDA graphs recorded, for each shape of a
batch. To keep the number of different shapes small, sizes are rounded up, and sentences of PAD are
appended to fill the rest.
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
from bleuprint.runtime.rounding import divide_rounding_up, round_up

# The numbers of tokens and of sentences are rounded up to numbers with this many significant bits,
# so that they grow by at most 1/16 and 1/2. With 400,000 pairs of lengths like in WMT14, 3% of the
# tokens are PAD, and batches of 3,400, 13,000 and 25,000 tokens have 300, 183 and 138 shapes.
_TOKEN_BITS = 5
_SENTENCE_BITS = 2
# Flash attention computes this many positions at once, and the programs of our kernels end beyond a
# length: so the bound on the lengths is a multiple of it.
_LENGTH_STEP = 128


class PackedSide(NamedTuple):
    """The source or the target sentences of a batch, one after the other.

    Attributes:
        ids: The token ids of all sentences, (tokens,).
        positions: The position of each token in its sentence, from 0, (tokens,).
        offsets: The index in `ids` where each sentence begins, and the number of tokens at the end,
            (sentences + 1,).
    """

    ids: Tensor
    positions: Tensor
    offsets: Tensor


@dataclass(frozen=True)
class PackedBatch:
    """A batch without padding between its sentences.

    Attributes:
        source: The source sentences.
        target: The decoder's input: each sentence begins with BOS and lacks its EOS.
        labels: The tokens to predict, (target tokens,); PAD in the appended sentences.
        longest: An upper bound of all lengths, a multiple of 128.
        lengths: The lengths of both sides of each pair, EOS included, (pairs, 2); without the
            appended sentences of PAD.
    """

    source: PackedSide
    target: PackedSide
    labels: Tensor
    longest: int
    lengths: NDArray[np.int64]

    @classmethod
    def from_ids(cls, pairs: PairIds, pin_memory: bool = False) -> Self:
        """Create the batch of some sentence pairs.

        The sentences of one language follow each other without padding. Sentences of PAD are
        appended, so that the sizes are rounded up and few different sizes occur.

        Args:
            pairs: The sentence pairs as token ids; each sentence ends in EOS.
            pin_memory: Whether to use page-locked memory, from which a GPU copies asynchronously.
        """
        lengths = pairs.lengths()
        size = _rounded_size(lengths)
        source = _concatenate(pairs.source, size.source_tokens, size.pad_sentences)
        labels = _concatenate(pairs.target, size.target_tokens, size.pad_sentences)
        # The difference of neighboring offsets is the length of a sentence.
        longest_source = int(source.offsets.diff().max())
        longest_target = int(labels.offsets.diff().max())
        longest = max(longest_source, longest_target)
        # Attention needs an upper bound of all lengths. Kernels are compiled for each bound, so it
        # is rounded up.
        longest_bound = round_up(longest, _LENGTH_STEP)
        batch = cls(
            source=source,
            target=labels._replace(ids=_decoder_input(labels)),
            labels=labels.ids,
            longest=longest_bound,
            lengths=lengths,
        )
        return batch.map(Tensor.pin_memory) if pin_memory else batch

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the batch: a CUDA graph fits all batches with the same sizes."""
        return (*map(len, self.tensors), self.longest)

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device; the copy is asynchronous."""
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function to each tensor of the batch, and return the results as a new batch.

        Args:
            function: The function, such as `Tensor.pin_memory`.
        """
        return replace(
            self,
            source=_map_side(function, self.source),
            target=_map_side(function, self.target),
            labels=function(self.labels),
        )

    @property
    def tensors(self) -> list[Tensor]:
        """Return all tensors of the batch, always in the same order."""
        return [*self.source, *self.target, self.labels]


class _RoundedSize(NamedTuple):
    """The size of a packed batch, rounded up.

    Attributes:
        source_tokens: The number of source tokens, PAD included.
        target_tokens: The number of target tokens, PAD included.
        pad_sentences: The number of appended sentences of PAD.
    """

    source_tokens: int
    target_tokens: int
    pad_sentences: int


def _rounded_size(lengths: NDArray[np.int64]) -> _RoundedSize:
    """Round up the size of a batch, so that few different sizes occur.

    GPU kernels are compiled, and CUDA graphs recorded, for each size. So the numbers of tokens and
    of sentences are rounded up, and sentences of PAD, at least one, fill the difference.

    Args:
        lengths: The lengths of source and target of each pair, (pairs, 2).
    """
    pair_count = len(lengths)
    tokens = lengths.sum(0)  # The numbers of source tokens and of target tokens, (2,).
    longest = int(lengths.max())
    # At least one token is added on each side, since a sentence of PAD needs one.
    rounded_tokens = _round_up_to_bits(tokens + 1, _TOKEN_BITS)
    pad_tokens = rounded_tokens - tokens
    # With so many sentences of PAD, none is longer than the longest sentence of the batch.
    needed_pad_sentences = divide_rounding_up(int(pad_tokens.max()), longest)
    sentences = np.array(pair_count + needed_pad_sentences)
    rounded_sentences = int(_round_up_to_bits(sentences, _SENTENCE_BITS))
    pad_sentences = rounded_sentences - pair_count
    # Rounding up the number of sentences has added sentences of PAD. Each needs at least one token,
    # so there may have to be more tokens than before.
    with_one_token_each = _round_up_to_bits(tokens + pad_sentences, _TOKEN_BITS)
    source_tokens, target_tokens = np.maximum(rounded_tokens, with_one_token_each).tolist()
    return _RoundedSize(
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        pad_sentences=pad_sentences,
    )


def _round_up_to_bits(numbers: NDArray[np.int64], bits: int) -> Any:
    """Round integers up to numbers with few significant binary digits; the rest are zeros.

    With 2 bits: 5 (101 in binary) becomes 6 (110), and 13 (1101) becomes 16 (10000).

    Args:
        numbers: Positive integers.
        bits: The number of significant binary digits.
    """
    # `frexp` returns the exponent of a number, which is the number of binary digits of an integer.
    _, digits = np.frexp(numbers)
    zero_digits = np.maximum(0, digits - bits).astype(np.int64)
    # A number with so many zeros at its end is a multiple of this power of 2.
    steps = 1 << zero_digits
    # The remainder of a negative number is what is missing to the next multiple: -30 % 16 is 2.
    missing = -numbers % steps
    return numbers + missing


def _map_side(function: Callable[[Tensor], Tensor], side: PackedSide) -> PackedSide:
    """Apply a function to each tensor of the source or the target side of a batch."""
    return PackedSide(
        ids=function(side.ids),
        positions=function(side.positions),
        offsets=function(side.offsets),
    )


def _decoder_input(labels: PackedSide) -> Tensor:
    """Return the token ids that the decoder reads as input, to predict the labels.

    The input at a position is the label of the position before; a sentence begins with BOS. From
    the labels `a b EOS c EOS` of two sentences, the result is `BOS a b BOS c`.

    Args:
        labels: The target sentences one after the other, followed by sentences of PAD.

    Returns:
        The ids, (tokens,). A sentence of PAD also has PAD at its beginning.
    """
    # `roll` moves all labels to the next position: EOS `a b EOS c`. The first position of each
    # sentence now has the last label of another sentence, which is replaced below.
    input_ids = labels.ids.roll(1)
    starts = labels.offsets[:-1].long()
    is_pad_sentence = labels.ids[starts] == PAD
    input_ids[starts] = torch.where(is_pad_sentence, PAD, BOS)
    return input_ids


def _concatenate(sentences: list[Sentence], tokens: int, pad_sentences: int) -> PackedSide:
    """Put sentences one after the other, and append sentences of PAD up to a number of tokens.

    Args:
        sentences: The token ids of the source or the target sentences.
        tokens: The number of tokens in all, PAD included.
        pad_sentences: The number of sentences of PAD to append. Their lengths differ by at most 1.
    """
    lengths = list(map(len, sentences))
    text_tokens = sum(lengths)
    pad_tokens = tokens - text_tokens
    # If the division has a remainder, the first sentences of PAD get one more token each.
    pad_length, longer_sentences = divmod(pad_tokens, pad_sentences)
    for index in range(pad_sentences):
        is_longer = index < longer_sentences
        lengths.append(pad_length + 1 if is_longer else pad_length)

    ids = np.full(tokens, PAD, np.int64)
    ids[:text_tokens] = np.concatenate(sentences)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    # The position of a token is its index minus the index where its sentence begins.
    positions = np.arange(tokens) - np.repeat(offsets[:-1], lengths)
    # A sentence of PAD may be longer than the model has positions, so all its tokens get 0.
    positions[text_tokens:] = 0
    return PackedSide(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        offsets=torch.from_numpy(offsets),
    )


# The two forms of a batch that a model is trained on.
TrainingBatch: TypeAlias = Batch | PackedBatch
