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
    """Reads the sentence pairs of batches of the training set.

    With BPE-dropout, each word is split into other subwords in each epoch, because merges of BPE
    are skipped at random (Provilkov et al. 2020). How a sentence is split depends only on the seed,
    the epoch, the sentence and its language: neither on the number of processes nor on
    interruptions.
    """

    def __init__(
        self, corpus: BinaryCorpus, settings: Train, seed: int, max_positions: int
    ) -> None:
        """Create a reader.

        Args:
            corpus: The corpus.
            settings: The settings of the training, with the probability of BPE-dropout.
            seed: The seed of the training.
            max_positions: The length of the longest sentence that the model can read.
        """
        self._corpus = corpus
        self._settings = settings
        self._seed = seed
        self._max_positions = max_positions

    def __call__(self, batches: Sequence[PlannedBatch]) -> list[list[PairIds]]:
        """Read the sentence pairs of some batches.

        Args:
            batches: The batches: their epoch, and the rows of their pairs in the training set.

        Returns:
            The parts of each batch. Without BPE-dropout, a batch has one part. BPE-dropout makes
            sentences longer, so that a batch may exceed `max_tokens`. So it is divided into parts
            of at most so many tokens.
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
        """Return the sentence pairs of a batch with other subwords, by BPE-dropout."""
        return PairIds(
            source=self._resegment_side(pairs.source, batch, self._corpus.source),
            target=self._resegment_side(pairs.target, batch, self._corpus.target),
        )

    def _resegment_side(
        self, sentences: list[Sentence], batch: PlannedBatch, language: str
    ) -> list[Sentence]:
        """Return the source or target sentences of a batch with other subwords, by BPE-dropout.

        A sentence that would become too long for the model keeps its subwords.

        Args:
            sentences: The token ids of the sentences, EOS included.
            batch: The batch: its epoch, and the rows of the sentences in the training set.
            language: The language of the sentences.
        """
        segmentation = self._corpus.segmentation(language)
        new_sentences: list[Sentence] = []
        for row, ids in zip(batch.rows.tolist(), sentences, strict=True):
            # A generator for each sentence, so that the order of sentences does not matter.
            random = Random(f"{self._seed} {batch.epoch} {row} {language}")
            ids_without_eos = np.asarray(ids)[:-1].tolist()
            new_ids = segmentation.resegment(ids_without_eos, self._settings.bpe_dropout, random)
            new_ids.append(EOS)
            is_too_long = len(new_ids) > self._max_positions
            new_sentences.append(ids if is_too_long else new_ids)
        return new_sentences

    def _divide(self, pairs: PairIds) -> list[PairIds]:
        """Divide the sentence pairs of a batch into parts with at most `max_tokens` positions.

        Pairs of similar length are put together, so that the parts have little padding.
        """
        source_lengths, target_lengths = pairs.lengths().T
        longer_side = np.maximum(source_lengths, target_lengths)
        # By the longer side, then by both sides: lexsort sorts by its last key first.
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
    """One process's share of an update of the weights.

    Attributes:
        update: The whole update, with the batches of all processes.
        batch_indices: The indices of this process's batches in the update.
        batches: This process's batches. Each has one part, or several if BPE-dropout has made its
            sentences too long for one.
        position: How far the batches of the training have been read after this update.
    """

    update: PlannedUpdate
    batch_indices: range
    batches: list[list[TrainingBatch]]
    position: Position


def local_updates(
    corpus: BinaryCorpus, system: System, seed: int, start: Position, group: Group
) -> Generator[LocalUpdate, None, None]:
    """Yield this process's share of each update of the weights: with n processes, every n-th batch.

    The batches of all updates are planned first, in the same way by each process, and then read
    from the corpus. The updates end after `max_epochs`, if the setting is given.

    Args:
        corpus: The corpus.
        system: The settings of the system.
        seed: The seed of the training.
        start: How far the batches have been read before, such as by the last checkpoint.
        group: The processes that train together.
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
    # `tee` gives two copies of the plan. Readers take their batches from one of them, ahead of the
    # updates that are yielded from the other one.
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
    """Return the class of the batches that a model is trained on.

    A `PackedBatch` contains sentences one after the other, without padding. It needs an attention
    kernel that only some GPUs have. Otherwise a `Batch` contains sentences padded to one length.

    Args:
        model: The settings of the model's shape.
        train: The settings of the training, with its precision.
        device: The device that trains.
    """
    dtype = ACTIVATIONS.get(train.precision, torch.float32)
    return PackedBatch if can_pack(model, dtype, device) else Batch


def prefetch(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Yield the items of a generator, the next few of which a thread computes ahead of time.

    So batches are read while the model is trained on the batches before.

    Args:
        items: A generator; none of its items is None.
    """
    with closing(items), ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch") as pool:
        # The next items, oldest first. `next` gives None after the last item.
        futures = deque(pool.submit(next, items, None) for _ in range(_PREFETCHED_UPDATES))
        try:
            while (item := futures.popleft().result()) is not None:
                futures.append(pool.submit(next, items, None))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)


def _reader_count(settings: Train, group: Group) -> int:
    """Return how many processes read batches for this training process; 1: it reads by itself.

    Several read only with BPE-dropout on a GPU. Without BPE-dropout, reading is fast. On CPUs, the
    training itself needs all cores.
    """
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    return max(1, environment.worker_count() // group.local_size)
