"""Reads the batches of a training."""

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
    Indices,
    PlannedBatch,
    PlannedUpdate,
    Position,
    batch_by_size,
    plan_updates,
)
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.packed_batch import PackedBatch, TrainingBatch
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.layout import can_pack
from bleuprint.runtime import environment
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.process_pool import map_parts
from bleuprint.training.optimizer import ACTIVATIONS

T = TypeVar("T")

# The number of updates that are read ahead.
_PREFETCH = 3


class BatchReader:
    """Reads batches of the training set, with BPE-dropout if set (Provilkov et al. 2020).

    BPE-dropout draws the subwords of a sentence in each epoch. The draw depends on the seed, the
    epoch, the sentence and its language only, not on other processes or interruptions. A sentence
    drawn longer than `max_positions`, the model's limit, keeps its original ids.
    """

    def __init__(
        self, corpus: BinaryCorpus, settings: Train, seed: int, max_positions: int
    ) -> None:
        self._corpus, self._settings, self._seed = corpus, settings, seed
        self._max_positions = max_positions

    def __call__(self, batches: Sequence[PlannedBatch]) -> list[list[PairIds]]:
        """Each batch in one part; with BPE-dropout, in parts of at most max_tokens positions."""
        if not self._settings.bpe_dropout:
            return [[read_ids(self._corpus, "train", rows)] for _, rows in batches]
        return [self._split(self._draw(epoch, rows)) for epoch, rows in batches]

    def _draw(self, epoch: int, rows: Indices) -> PairIds:
        pairs = read_ids(self._corpus, "train", rows)
        languages = self._corpus.source, self._corpus.target
        source, target = (
            [
                self._draw_sentence(language, f"{self._seed} {epoch} {row} {language}", ids)
                for row, ids in zip(rows.tolist(), side, strict=True)
            ]
            for language, side in zip(languages, pairs, strict=True)
        )
        return PairIds(source, target)

    def _draw_sentence(self, language: str, seed: str, ids: Sentence) -> Sentence:
        segmentation = self._corpus.segmentation(language)
        original = np.asarray(ids)[:-1].tolist()
        drawn = [*segmentation.resegment(original, self._settings.bpe_dropout, Random(seed)), EOS]
        return drawn if len(drawn) <= self._max_positions else ids

    def _split(self, pairs: PairIds) -> list[PairIds]:
        """Split pairs, whose lengths BPE-dropout has changed, into batches of similar length."""
        source, target = (np.array(list(map(len, side))) for side in pairs)
        longer = np.maximum(source, target)
        order = np.lexsort((source + target, longer))
        parts = batch_by_size(
            source, target, order, max(self._settings.max_tokens, int(longer.max()))
        )
        return [
            PairIds([pairs.source[row] for row in part], [pairs.target[row] for row in part])
            for part in (rows.tolist() for rows in parts)
        ]


@dataclass(frozen=True)
class LocalUpdate:
    """One process's part of an update.

    `batch_indices`: the indices of its batches in the update. A batch has one part or several (see
    BatchReader). `position`: the position after the update.
    """

    update: PlannedUpdate
    batch_indices: range
    batches: list[list[TrainingBatch]]
    position: Position


def local_updates(
    corpus: BinaryCorpus, system: System, seed: int, start: Position, group: Group
) -> Generator[LocalUpdate, None, None]:
    """Yield the process's part of each update from `start`: every group.size-th batch.

    Ends after the epochs in the settings, if any.
    """
    settings = system.train
    sides = (corpus.side("train", language) for language in (corpus.source, corpus.target))
    plan, ahead = tee(
        plan_updates(
            *(side.lengths for side in sides),
            tokens_per_update=settings.tokens_per_update,
            sentences_per_update=settings.sentences_per_update,
            max_tokens=settings.max_tokens,
            seed=seed,
            start=start,
            epochs=settings.max_epochs,
        )
    )
    local = (update.batches[group.rank :: group.size] for update, _ in ahead)
    reader = partial(BatchReader, corpus, settings, seed, system.model.max_positions)
    batches = map_parts(reader, local, _num_workers(settings, group))
    kind = batch_class(system.model, settings, group.device)
    pin_memory = group.device.type == "cuda"
    with closing(batches):
        for read_batches, (update, position) in zip(batches, plan, strict=True):
            parts: list[list[TrainingBatch]] = [
                [kind.from_ids(part, pin_memory) for part in batch] for batch in read_batches
            ]
            indices = range(group.rank, len(update.batches), group.size)
            yield LocalUpdate(update, indices, parts, position)


def batch_class(model: Model, train: Train, device: torch.device) -> type[TrainingBatch]:
    """What a model is trained on: packed batches where the device has a kernel for them."""
    dtype = ACTIVATIONS.get(train.precision, torch.float32)
    return PackedBatch if can_pack(model, dtype, device) else Batch


def prefetch(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items, produced ahead of time by a thread."""
    with closing(items), ThreadPoolExecutor(1, "prefetch") as pool:
        ahead = deque(pool.submit(next, items, None) for _ in range(_PREFETCH))
        try:
            while (item := ahead.popleft().result()) is not None:
                ahead.append(pool.submit(next, items, None))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)


def _num_workers(settings: Train, group: Group) -> int:
    """Number of processes that read; more than this one only for BPE-dropout on a GPU."""
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    return max(1, environment.worker_count() // group.local_size)
