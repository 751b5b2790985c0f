"""Packed batches: every token where it belongs, in few shapes."""

from itertools import pairwise

import numpy as np
import pytest

from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD


def drawn(count, seed, longest=30):
    """Pairs of random ids and lengths."""
    rng = np.random.default_rng(seed)
    sides = (
        [[*rng.integers(4, 90, length).tolist(), EOS] for length in rng.integers(0, longest, count)]
        for _ in range(2)
    )
    return PairIds(*sides)


def sentences(side):
    """The sentences of a side, by its offsets, with the positions of their tokens."""
    bounds = side.offsets.tolist()
    return [
        (side.ids[start:end].tolist(), side.positions[start:end].tolist())
        for start, end in pairwise(bounds)
    ]


@pytest.mark.parametrize(("count", "longest"), [(1, 1), (1, 30), (7, 30), (300, 30), (90, 3)])
def test_each_sentence_is_there_and_the_rest_is_padding(count, longest):
    pairs = drawn(count, count, longest)
    batch = PackedBatch.from_ids(pairs)
    source, target = sentences(batch.source), sentences(batch.target)
    labels = sentences(batch.target._replace(ids=batch.labels))
    assert [ids for ids, _ in source[:count]] == pairs.source
    assert [ids for ids, _ in labels[:count]] == pairs.target
    assert [ids for ids, _ in target[:count]] == [[BOS, *ids[:-1]] for ids in pairs.target]
    for side in (source, target):
        assert all(at == list(range(len(ids))) for ids, at in side[:count])
        assert all(ids and {*ids} == {PAD} and {*at} == {0} for ids, at in side[count:])
        assert len(side) == len(source) > count
    for side in (batch.source, batch.target):
        assert side.offsets[-1] == len(side.ids)
        assert batch.longest >= side.offsets.diff().max()
        assert len(side.ids) <= 1.25 * sum(map(len, pairs.source + pairs.target)) + 16
    assert batch.lengths.tolist() == [list(map(len, pair)) for pair in zip(*pairs, strict=True)]


def test_a_corpus_has_few_shapes():
    rng = np.random.default_rng(1)
    source = np.clip(rng.normal(14, 4, 29_000), 4, 45).astype(int)
    target = np.clip(source + rng.normal(0, 2, len(source)), 3, 45).astype(int)
    shapes, rows, tokens = set(), 0, 0
    for epoch in range(3):
        for batch in plan_epoch(source, target, 4096, 1, epoch):
            pairs = PairIds(*([[EOS] * n for n in of[batch]] for of in (source, target)))
            packed = PackedBatch.from_ids(pairs)
            shapes.add(packed.shape)
            rows += len(packed.source.ids) + len(packed.target.ids)
            tokens += packed.lengths.sum()
    assert len(shapes) < 100  # fewer than graphs that are kept
    assert rows < 1.05 * tokens
