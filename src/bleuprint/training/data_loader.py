"""Reading the batches of a training: each process reads its share of every update."""

from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import tee
from random import Random
from typing import TypeVar

import numpy as np
import torch

from bleuprint.config.system import Model, System, Train
from bleuprint.dataset.batch import Batch, PairIds, Sentence, read_ids
from bleuprint.dataset.batching import (
    PlannedBatch,
    PlannedUpdate,
    Position,
    batch_by_size,
    plan_updates,
)
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.packed_batch import PackedBatch, TrainingBatch
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.backends import can_pack
from bleuprint.runtime import environment
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.process_pool import map_parts
from bleuprint.training.optimizer import ACTIVATIONS

Item = TypeVar("Item")

# The number of updates that are read ahead.
_PREFETCHED_UPDATES = 3


class BatchReader:
    """Reads batches of the training set, with BPE-dropout if it is set (Provilkov et al. 2020).

    BPE-dropout splits each word anew in each epoch, skipping merges at random. How a sentence is
    split depends only on the seed, the epoch, the sentence and its language, not on other processes
    or interruptions. A sentence that would become longer than the model's limit keeps its ids.
    """

    def __init__(
        self, corpus: BinaryCorpus, settings: Train, seed: int, max_positions: int
    ) -> None:
        """Create a reader.

        Args:
            corpus: The corpus.
            settings: The settings of the training, with the rate of BPE-dropout.
            seed: The seed of the training.
            max_positions: The length of the longest sentence that the model can read.
        """
        self._corpus = corpus
        self._settings = settings
        self._seed = seed
        self._max_positions = max_positions

    def __call__(self, batches: Sequence[PlannedBatch]) -> list[list[PairIds]]:
        """Read some batches.

        Returns:
            For each batch its parts. BPE-dropout makes sentences longer, so a batch is divided into
            parts of at most `max_tokens` positions; without it, a batch has one part.
        """
        parts_of_batches = []
        for batch in batches:
            pairs = read_ids(self._corpus, "train", batch.rows)
            if self._settings.bpe_dropout:
                new_pairs = self._resegment(pairs, batch)
                parts_of_batches.append(self._divide(new_pairs))
            else:
                parts_of_batches.append([pairs])
        return parts_of_batches

    def _resegment(self, pairs: PairIds, batch: PlannedBatch) -> PairIds:
        """Return the sentence pairs of a batch, split anew by BPE-dropout."""
        return PairIds(
            source=self._resegment_side(pairs.source, batch, self._corpus.source),
            target=self._resegment_side(pairs.target, batch, self._corpus.target),
        )

    def _resegment_side(
        self, sentences: list[Sentence], batch: PlannedBatch, language: str
    ) -> list[Sentence]:
        """Return one side of a batch, split anew by BPE-dropout.

        A sentence that would be too long for the model keeps its tokens.
        """
        segmentation = self._corpus.segmentation(language)
        new_sentences: list[Sentence] = []
        for row, ids in zip(batch.rows.tolist(), sentences, strict=True):
            random = Random(f"{self._seed} {batch.epoch} {row} {language}")
            ids_without_eos = np.asarray(ids)[:-1].tolist()
            new_ids = segmentation.resegment(ids_without_eos, self._settings.bpe_dropout, random)
            new_ids.append(EOS)
            is_too_long = len(new_ids) > self._max_positions
            new_sentences.append(ids if is_too_long else new_ids)
        return new_sentences

    def _divide(self, pairs: PairIds) -> list[PairIds]:
        """Divide sentence pairs into parts of similar length and at most `max_tokens` positions."""
        source_lengths, target_lengths = pairs.lengths().T
        longer_side = np.maximum(source_lengths, target_lengths)
        # The last key of lexsort is the first one to sort by.
        order = np.lexsort((source_lengths + target_lengths, longer_side))
        # A part must hold the longest sentence.
        max_tokens = max(self._settings.max_tokens, int(longer_side.max()))
        parts = []
        for rows in batch_by_size(source_lengths, target_lengths, order, max_tokens):
            indices = rows.tolist()
            part = PairIds(
                source=[pairs.source[index] for index in indices],
                target=[pairs.target[index] for index in indices],
            )
            parts.append(part)
        return parts


@dataclass(frozen=True)
class LocalUpdate:
    """One process's share of an update.

    Attributes:
        update: The whole update.
        batch_indices: The indices of this process's batches in the update.
        batches: These batches, each in one or more parts (see BatchReader).
        position: The position in the plan after the update.
    """

    update: PlannedUpdate
    batch_indices: range
    batches: list[list[TrainingBatch]]
    position: Position


def local_updates(
    corpus: BinaryCorpus, system: System, seed: int, start: Position, group: Group
) -> Generator[LocalUpdate, None, None]:
    """Yield this process's share of each update: every n-th batch, with n processes.

    Ends after the epochs in the settings, if there is such a limit.

    Args:
        corpus: The corpus.
        system: The settings of the system.
        seed: The seed of the training.
        start: The position in the plan from which to start.
        group: The processes of the training.
    """
    settings = system.train
    plan = plan_updates(
        corpus.side("train", corpus.source).lengths,
        corpus.side("train", corpus.target).lengths,
        tokens_per_update=settings.tokens_per_update,
        sentences_per_update=settings.sentences_per_update,
        max_tokens=settings.max_tokens,
        seed=seed,
        start=start,
        epochs=settings.max_epochs,
    )
    # The readers take the planned batches from one copy of the plan, ahead of what is yielded.
    plan, plan_to_read = tee(plan)
    batches_to_read = (update.batches[group.rank :: group.size] for update, _ in plan_to_read)
    reader = partial(BatchReader, corpus, settings, seed, system.model.max_positions)
    read_batches = map_parts(reader, batches_to_read, _reader_count(settings, group))
    batch_type = batch_class(system.model, settings, group.device)
    pin_memory = group.device.type == "cuda"
    with closing(read_batches):
        for parts_of_batches, (update, position) in zip(read_batches, plan, strict=True):
            batches: list[list[TrainingBatch]] = []
            for parts in parts_of_batches:
                batches.append([batch_type.from_ids(part, pin_memory) for part in parts])
            yield LocalUpdate(
                update=update,
                batch_indices=range(group.rank, len(update.batches), group.size),
                batches=batches,
                position=position,
            )


def batch_class(model: Model, train: Train, device: torch.device) -> type[TrainingBatch]:
    """Return the form of the batches that a model is trained on.

    Batches are packed, without padding, if the device has an attention kernel for them.
    """
    dtype = ACTIVATIONS.get(train.precision, torch.float32)
    return PackedBatch if can_pack(model, dtype, device) else Batch


def prefetch(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Yield items that a thread takes from a generator ahead of time, in their order."""
    with closing(items), ThreadPoolExecutor(1, "prefetch") as pool:
        waiting = deque(pool.submit(next, items, None) for _ in range(_PREFETCHED_UPDATES))
        try:
            # None is the default of `next`: there are no more items.
            while (item := waiting.popleft().result()) is not None:
                waiting.append(pool.submit(next, items, None))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)


def _reader_count(settings: Train, group: Group) -> int:
    """Return the number of processes that read for this one; 1 means that it reads by itself.

    Others help only with BPE-dropout on a GPU: reading is fast without BPE-dropout, and a training
    on CPUs needs all cores.
    """
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    return max(1, environment.worker_count() // group.local_size)
