"""Reading the training text batch by batch, ahead of the training where that takes long."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import tee
from queue import Full, Queue
from random import Random
from threading import Event, Thread
from typing import TypeVar

import numpy as np

from bleuprint.config.system import System, Train
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
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.runtime import environment
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.process_pool import map_parts

T = TypeVar("T")

# So many updates are read ahead; who reads looks this often, in seconds, whether they are wanted.
_AHEAD = 2
_PATIENCE = 0.1


class Reader:
    """Reads batches of the training text, in whichever process; with BPE-dropout if any is asked.

    With it (Provilkov et al. 2020) the units of a sentence are drawn anew in each epoch. What is
    drawn follows from the seed, the epoch, the sentence and its language, and from nothing drawn
    before: neither other processes nor interruptions change it. A draw of more than `longest`
    units, the model's limit, is not used: the sentence stays as it is.
    """

    def __init__(self, corpus: BinaryCorpus, settings: Train, seed: int, longest: int) -> None:
        self._corpus, self._settings, self._seed = corpus, settings, seed
        self._longest = longest

    def __call__(self, batches: Sequence[PlannedBatch]) -> list[list[PairIds]]:
        """Each batch whole; cut into parts of max_tokens, by length, where dropout draws."""
        if not self._settings.bpe_dropout:
            return [[read_ids(self._corpus, "train", rows)] for _, rows in batches]
        return [self._cut(self._draw(epoch, rows)) for epoch, rows in batches]

    def _draw(self, epoch: int, rows: Indices) -> PairIds:
        sides = read_ids(self._corpus, "train", rows)
        languages = self._corpus.source, self._corpus.target
        source, target = (
            [
                self._drawn(language, f"{self._seed} {epoch} {row} {language}", ids)
                for row, ids in zip(rows.tolist(), side, strict=True)
            ]
            for language, side in zip(languages, sides, strict=True)
        )
        return PairIds(source, target)

    def _drawn(self, language: str, seed: str, ids: Sentence) -> Sentence:
        segmentation = self._corpus.segmentation(language)
        words = np.asarray(ids)[:-1].tolist()
        drawn = [*segmentation.resegment(words, self._settings.bpe_dropout, Random(seed)), EOS]
        return drawn if len(drawn) <= self._longest else ids

    def _cut(self, sides: PairIds) -> list[PairIds]:
        """Pairs that were of one length have grown unevenly: sort them, and keep the limit."""
        source, target = (np.array(list(map(len, side))) for side in sides)
        longer = np.maximum(source, target)
        order = np.lexsort((source + target, longer))
        parts = batch_by_size(
            source, target, order, max(self._settings.max_tokens, int(longer.max()))
        )
        return [
            PairIds([sides.source[row] for row in part], [sides.target[row] for row in part])
            for part in (rows.tolist() for rows in parts)
        ]


@dataclass(frozen=True)
class Share:
    """What of an update falls to one process: the batches at some `places` among all of them.

    A batch is in one part, or in several (see Reader). `position` is that after the update.
    """

    update: PlannedUpdate
    places: range
    batches: list[list[Batch]]
    position: Position


def shares(
    corpus: BinaryCorpus, system: System, seed: int, start: Position, group: Group
) -> Generator[Share, None, None]:
    """The process's share of each update from `start` on: each group.size-th batch.

    Ends after the epochs that the settings give, if they do. A thread reads ahead, so that what
    computes does not wait.
    """
    return read_ahead(_shares(corpus, system, seed, start, group))


def _shares(
    corpus: BinaryCorpus, system: System, seed: int, start: Position, group: Group
) -> Generator[Share, None, None]:
    settings = system.train
    source, target = (
        corpus.side("train", language).lengths for language in (corpus.source, corpus.target)
    )
    plan, ahead = tee(
        plan_updates(
            source,
            target,
            tokens_per_update=settings.tokens_per_update,
            max_tokens=settings.max_tokens,
            seed=seed,
            start=start,
            epochs=settings.max_epochs,
        )
    )
    own = (update.batches[group.rank :: group.size] for update, _ in ahead)
    reader = partial(Reader, corpus, settings, seed, system.model.max_positions)
    batches = map_parts(reader, own, _readers(settings, group))
    pinned = group.device.type == "cuda"
    with closing(batches):
        for read_batches, (update, position) in zip(batches, plan, strict=True):
            made = [[Batch.from_ids(part, pinned) for part in parts] for parts in read_batches]
            places = range(group.rank, len(update.batches), group.size)
            yield Share(update, places, made, position)


def read_ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items, of which a thread makes the next ones while one is worked on."""
    made: Queue[tuple[T | None, BaseException | None]] = Queue(_AHEAD)
    ended = Event()

    def make() -> None:
        error: BaseException | None = None
        try:
            with closing(items):
                for item in items:
                    if not _put(made, (item, None), ended):
                        return
        except BaseException as raised:  # for the one who takes the items
            error = raised
        _put(made, (None, error), ended)

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item
    finally:
        ended.set()
        thread.join()


def _put(queue: "Queue[T]", item: T, ended: Event) -> bool:
    """Wait for room; False if nobody takes items any more."""
    while not ended.is_set():
        try:
            queue.put(item, timeout=_PATIENCE)
            return True
        except Full:
            continue
    return False


def _readers(settings: Train, group: Group) -> int:
    """Processes that read ahead, 1 being this one: no GPU should wait for BPE-dropout."""
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    return max(1, environment.workers() // group.local)
