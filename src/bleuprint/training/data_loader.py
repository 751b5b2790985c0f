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
from bleuprint.training.optimizer import ACTIVATION_DTYPES
from bleuprint.training.shared_plans import EpochPlanner, PlanOfEpoch

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
            sentences longer, so that a batch may exceed `max_tokens`. It is then divided into
            parts that do not.
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
        """Split the words of a batch into other subwords, by BPE-dropout.

        The words stay the same: `lowest` may become `low est` in one epoch and `lo w est` in the
        next.
        """
        return PairIds(
            source=self._resegment_side(pairs.source, batch, self._corpus.source),
            target=self._resegment_side(pairs.target, batch, self._corpus.target),
        )

    def _resegment_side(
        self, sentences: list[Sentence], batch: PlannedBatch, language: str
    ) -> list[Sentence]:
        """Split the words on one side of a batch into other subwords, by BPE-dropout.

        A sentence that would become too long for the model keeps its subwords.

        Args:
            sentences: The token ids of the sentences, EOS included.
            batch: The batch: its epoch, and the rows of the sentences in the training set.
            language: The language of the sentences.
        """
        segmentation = self._corpus.segmentation(language)
        new_sentences: list[Sentence] = []
        for row, ids in zip(batch.rows.tolist(), sentences, strict=True):
            # Each sentence gets a random generator of its own. So its subwords do not depend on
            # which process reads it, nor on the sentences that were read before.
            random = Random(f"{self._seed} {batch.epoch} {row} {language}")
            ids_without_eos = np.asarray(ids)[:-1].tolist()
            new_ids = segmentation.resegment(ids_without_eos, self._settings.bpe_dropout, random)
            new_ids.append(EOS)
            is_too_long = len(new_ids) > self._max_positions
            new_sentences.append(ids if is_too_long else new_ids)
        return new_sentences

    def _divide(self, pairs: PairIds) -> list[PairIds]:
        """Divide the sentence pairs of a batch into parts of at most `max_tokens` tokens.

        Padding counts as tokens. Pairs of similar length get into the same part, so that there is
        little padding.
        """
        source_lengths, target_lengths = pairs.lengths().T
        longer_side = np.maximum(source_lengths, target_lengths)
        # Sorted by the longer side, then by both sides together: the last key of lexsort is the
        # first by which it sorts.
        order = np.lexsort((source_lengths + target_lengths, longer_side))
        # A part has room for the longest sentence in any case.
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
    corpus: BinaryCorpus,
    system: System,
    seed: int,
    start: Position,
    group: Group,
    plan_of_epoch: PlanOfEpoch | None = None,
) -> Generator[LocalUpdate, None, None]:
    """Yield this process's share of each update of the weights: with n processes, every n-th batch.

    A plan, which is the same in all processes, says which sentences each batch contains. Only the
    sentences of this process's batches are then read from the corpus. The updates end after
    `max_epochs`, if the setting is given.

    Args:
        corpus: The corpus.
        system: The settings of the system.
        seed: The seed of the training.
        start: Where in the plan to start. A training that continues from a checkpoint starts where
            the checkpoint ended.
        group: The processes that train together.
        plan_of_epoch: Returns the batches of an epoch, which may be shared with other processes;
            None if this process plans each epoch by itself.
    """
    settings = system.train
    plan = plan_updates(
        plan_of_epoch or EpochPlanner(corpus, settings, seed),
        tokens_per_update=settings.tokens_per_update,
        sentences_per_update=settings.sentences_per_update,
        start=start,
        epochs=settings.max_epochs,
    )
    # The plan is needed twice: the readers go through it ahead of the updates that are yielded.
    plan, plan_of_readers = tee(plan)
    # With 2 processes, the first one (rank 0) reads batches 0, 2, 4 ... of each update.
    batches_to_read = (update.batches[group.rank :: group.size] for update, _ in plan_of_readers)
    reader = partial(BatchReader, corpus, settings, seed, system.model.max_positions)
    read_batches = map_parts(reader, batches_to_read, _reader_count(settings, group))
    batch_type = batch_class(system.model, settings, group.device)
    # Batches in pinned memory can be copied to the GPU while it computes.
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
    """Return the class of the batches that a model is trained on: packed or padded.

    A `PackedBatch` contains sentences one after the other, without padding. It needs an attention
    kernel that only some GPUs support. On all other devices, the class is `Batch`, in which
    sentences are padded to the same length.

    Args:
        model: The settings of the model's shape.
        train: The settings of the training, with its precision.
        device: The device that trains.
    """
    dtype = ACTIVATION_DTYPES.get(train.precision, torch.float32)
    return PackedBatch if can_pack(model, dtype, device) else Batch


def prefetch(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Yield the items of a generator, while a thread already computes the next few of them.

    The trainer uses this to read the next batches while the model is trained on the present ones.

    Args:
        items: A generator; none of its items is None.
    """
    # One thread, because a generator cannot run in two threads at once.
    with closing(items), ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch") as pool:
        # The next items, in their order. After the last item, `next` returns None.
        futures = deque(pool.submit(next, items, None) for _ in range(_PREFETCHED_UPDATES))
        try:
            while (item := futures.popleft().result()) is not None:
                futures.append(pool.submit(next, items, None))
                yield item
        finally:
            # If the caller stops early, the items that were requested ahead are not computed.
            pool.shutdown(cancel_futures=True)


def _reader_count(settings: Train, group: Group) -> int:
    """Return how many processes read batches for this training process.

    If it is 1, the training process reads its batches itself. Without BPE-dropout, that is fast
    enough. On CPUs, the training needs all cores, so that more readers would slow it down.
    """
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    # The training processes on this machine share its cores.
    return max(1, environment.worker_count() // group.local_size)
