"""Reading the training text batch by batch, ahead of the training where that takes long."""

from collections.abc import Generator, Sequence
from functools import partial
from itertools import tee
from random import Random

import numpy as np

from bleuprint import environment
from bleuprint.batch import Sentence, Sides, read
from bleuprint.batches import Indices, Position, Rows, pack, updates
from bleuprint.binary import BinaryCorpus
from bleuprint.processes import Group
from bleuprint.settings import Train
from bleuprint.vocabulary import EOS
from bleuprint.workers import map_parts


class Reader:
    """Reads batches of the training text, in whichever process; with BPE-dropout if any is asked.

    With it (Provilkov et al. 2020) the units of a sentence are drawn anew in each epoch. What is
    drawn follows from the seed, the epoch, the sentence and its language, and from nothing drawn
    before: neither other processes nor interruptions change it.
    """

    def __init__(self, corpus: BinaryCorpus, settings: Train, seed: int) -> None:
        self._corpus, self._settings, self._seed = corpus, settings, seed

    def __call__(self, batches: Sequence[Rows]) -> list[list[Sides]]:
        """Each batch whole; cut into parts of batch_tokens, by length, where dropout draws."""
        if not self._settings.bpe_dropout:
            return [[read(self._corpus, "train", rows)] for _, rows in batches]
        return [self._cut(self._draw(epoch, rows)) for epoch, rows in batches]

    def _draw(self, epoch: int, rows: Indices) -> Sides:
        sides = read(self._corpus, "train", rows)
        languages = self._corpus.source, self._corpus.target
        source, target = (
            [
                self._drawn(language, f"{self._seed} {epoch} {row} {language}", ids)
                for row, ids in zip(rows.tolist(), side, strict=True)
            ]
            for language, side in zip(languages, sides, strict=True)
        )
        return Sides(source, target)

    def _drawn(self, language: str, seed: str, ids: Sentence) -> Sentence:
        segmentation = self._corpus.segmentation(language)
        words = np.asarray(ids)[:-1].tolist()
        return [*segmentation.resegment(words, self._settings.bpe_dropout, Random(seed)), EOS]

    def _cut(self, sides: Sides) -> list[Sides]:
        """Pairs that were of one length have grown unevenly: sort them, and keep the limit."""
        source, target = (np.array(list(map(len, side))) for side in sides)
        longer = np.maximum(source, target)
        order = np.lexsort((source + target, longer))
        parts = pack(source, target, order, max(self._settings.batch_tokens, int(longer.max())))
        return [
            Sides([sides.source[row] for row in part], [sides.target[row] for row in part])
            for part in (rows.tolist() for rows in parts)
        ]


def shares(
    corpus: BinaryCorpus, settings: Train, seed: int, start: Position, group: Group
) -> Generator[tuple[list[list[Sides]], Position], None, None]:
    """Of each update from `start` on, the batches that fall to this process: each group.size-th.

    A batch is in one part, or in several (see Reader). With each comes the position after the
    update. Never ends.
    """
    source, target = (
        corpus.side("train", language).lengths for language in (corpus.source, corpus.target)
    )
    plan, ahead = tee(
        updates(
            source,
            target,
            tokens_per_update=settings.tokens_per_update,
            batch_tokens=settings.batch_tokens,
            seed=seed,
            start=start,
        )
    )
    own = (update.batches[group.rank :: group.size] for update, _ in ahead)
    reader = partial(Reader, corpus, settings, seed)
    share = map_parts(reader, own, _readers(settings, group))
    for sides, (_, position) in zip(share, plan, strict=False):
        yield sides, position


def _readers(settings: Train, group: Group) -> int:
    """Processes that read ahead, 1 being this one: no GPU should wait for BPE-dropout."""
    if not settings.bpe_dropout or group.device.type == "cpu":
        return 1
    return max(1, environment.workers() // group.size)
