"""A packed batch has its sentences one after the other, and few different shapes.

GPUs replay recorded computations, one for each shape, so that padding fills sizes up to a few.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD


def random_sentences(rng, count, max_length):
    """Return sentences of random ids and lengths, each with EOS."""
    sentences = []
    for length in rng.integers(0, max_length, count):
        sentences.append([*rng.integers(4, 90, length).tolist(), EOS])
    return sentences


class UnpackedSentence(NamedTuple):
    """A sentence of a packed side.

    Attributes:
        ids: Its tokens.
        positions: The positions of its tokens, from which positional encodings are computed.
    """

    ids: list[int]
    positions: list[int]


def unpack(side):
    """Return the sentences of a packed side, divided by its offsets; padding is at the end."""
    sentences = []
    for start, stop in pairwise(side.offsets.tolist()):
        ids = side.ids[start:stop].tolist()
        positions = side.positions[start:stop].tolist()
        sentences.append(UnpackedSentence(ids, positions))
    return sentences


def ids_of(sentences):
    """Return the ids of unpacked sentences."""
    return [sentence.ids for sentence in sentences]


@pytest.fixture(
    params=[(1, 1), (1, 30), (7, 30), (300, 30), (90, 3)],
    ids=lambda param: f"{param[0]} pairs of at most {param[1]} tokens",
)
def pairs(request):
    """Sentence pairs of random ids and lengths."""
    count, max_length = request.param
    rng = np.random.default_rng(count)
    source = random_sentences(rng, count, max_length)
    target = random_sentences(rng, count, max_length)
    return PairIds(source, target)


def test_a_packed_batch_contains_each_source_sentence(pairs):
    """Sentences of a packed batch stand one after the other, without padding between them."""
    sentences = unpack(PackedBatch.from_ids(pairs).source)

    assert ids_of(sentences[: len(pairs.source)]) == pairs.source


def test_the_labels_of_a_packed_batch_are_the_target_sentences(pairs):
    """A packed batch stores sentences one after the other, without padding between them.

    `unpack` divides it into sentences again; those after the targets are padding.
    """
    batch = PackedBatch.from_ids(pairs)

    labels = unpack(batch.target._replace(ids=batch.labels))
    labels_without_padding = labels[: len(pairs.target)]

    assert ids_of(labels_without_padding) == pairs.target


def test_the_targets_of_a_packed_batch_begin_with_bos_and_lack_their_last_token(pairs):
    """The decoder reads BOS and the target without its last token, and predicts the next ones.

    A packed batch stores sentences one after the other; those after the targets are padding.
    """
    sentences = unpack(PackedBatch.from_ids(pairs).target)

    assert len(sentences) >= len(pairs.target)
    for sentence, ids in zip(sentences, pairs.target, strict=False):
        assert sentence.ids == [BOS, *ids[:-1]]


@pytest.mark.parametrize("side", ["source", "target"])
def test_positions_in_a_packed_batch_count_from_0_in_each_sentence(pairs, side):
    """Sentences of a packed batch stand one after the other, without padding between them."""
    sentences = unpack(getattr(PackedBatch.from_ids(pairs), side))

    for sentence in sentences[: len(pairs.source)]:
        assert sentence.positions == list(range(len(sentence.ids)))


@pytest.mark.parametrize("side", ["source", "target"])
def test_further_sentences_of_a_packed_batch_consist_of_padding(pairs, side):
    """Padding fills the batch up to one of a few shapes, so that CUDA graphs can be reused.

    It is divided into sentences of its own, after the sentences of the pairs.
    """
    sentences = unpack(getattr(PackedBatch.from_ids(pairs), side))

    padding = sentences[len(pairs.source) :]
    assert len(padding) > 0
    for sentence in padding:
        assert set(sentence.ids) == {PAD}
        assert set(sentence.positions) == {0}


def test_both_sides_of_a_packed_batch_have_equally_many_sentences(pairs):
    batch = PackedBatch.from_ids(pairs)

    assert len(unpack(batch.source)) == len(unpack(batch.target))


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_size_of_a_packed_side_is_limited(pairs, side):
    """Padding fills the batch up to one of a few shapes, but by a quarter and 16 tokens at most."""
    batch = PackedBatch.from_ids(pairs)
    packed_side = getattr(batch, side)

    assert packed_side.offsets[-1] == len(packed_side.ids)
    assert batch.longest >= packed_side.offsets.diff().max()
    token_count = sum(map(len, pairs.source + pairs.target))
    assert len(packed_side.ids) <= 1.25 * token_count + 16


def test_a_packed_batch_has_the_lengths_of_its_sentences(pairs):
    """The training loop counts source and target tokens by these lengths."""
    expected = []
    for source, target in zip(pairs.source, pairs.target, strict=True):
        expected.append([len(source), len(target)])

    batch = PackedBatch.from_ids(pairs)

    assert batch.lengths.tolist() == expected


def test_the_batches_of_a_corpus_have_few_shapes_and_little_padding():
    """A CUDA graph is recorded per shape; too many shapes would not all be kept in memory.

    The lengths are random, with about the means of Multi30k's 29,000 pairs.
    """
    rng = np.random.default_rng(1)
    source_lengths = np.clip(rng.normal(14, 4, 29_000), 4, 45).astype(int)
    target_lengths = np.clip(source_lengths + rng.normal(0, 2, 29_000), 3, 45).astype(int)

    shapes = set()
    packed_tokens = 0
    tokens = 0
    for epoch in range(3):
        batches = plan_epoch(source_lengths, target_lengths, max_tokens=4096, seed=1, epoch=epoch)
        for rows in batches:
            source = [[EOS] * length for length in source_lengths[rows]]
            target = [[EOS] * length for length in target_lengths[rows]]
            batch = PackedBatch.from_ids(PairIds(source, target))
            shapes.add(batch.shape)
            packed_tokens += len(batch.source.ids) + len(batch.target.ids)
            tokens += batch.lengths.sum()

    assert len(shapes) < 100  # At most 256 graphs are kept.
    assert packed_tokens < 1.05 * tokens  # Less than 5% padding.
