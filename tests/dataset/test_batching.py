"""Batches: every sentence once an epoch, within the limit, the same for every process."""

import dataclasses
from functools import partial
from itertools import islice

import numpy as np
import pytest

import systems
from bleuprint.dataset.batch import Batch, PairIds, read_ids
from bleuprint.dataset.batching import (
    PlannedBatch,
    Position,
    batch_by_size,
    plan_epoch,
    plan_updates,
)
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD
from bleuprint.runtime.process_pool import map_parts
from bleuprint.training.data_loader import BatchReader
from prepared import prepare
from trainings import merges, toy_pairs

LENGTHS = np.random.default_rng(5)
SOURCE = LENGTHS.integers(2, 30, 400)
TARGET = np.clip(SOURCE + LENGTHS.integers(-3, 4, 400), 2, None)

LONGEST = 1000
ROWS = list(range(40))
SETTINGS = systems.train(tokens_per_update=10_000, max_tokens=1)


def test_an_epoch_holds_every_sentence_once_within_the_limit():
    batches = plan_epoch(SOURCE, TARGET, 100, seed=1, epoch=0)
    assert sorted(np.concatenate(batches)) == list(range(400))
    for rows in batches:
        assert len(rows) * max(SOURCE[rows].max(), TARGET[rows].max()) <= 100


def test_batches_waste_little_on_padding():
    random = np.random.default_rng(5)
    source = random.integers(2, 30, 4000)
    target = np.clip(source + random.integers(-3, 4, 4000), 2, None)
    batches = plan_epoch(source, target, 300, seed=1, epoch=0)
    for lengths in (source, target):
        assert lengths.sum() / sum(len(rows) * lengths[rows].max() for rows in batches) > 0.95


@pytest.mark.parametrize("sentences", [None, 24])
def test_epochs_and_seeds_differ_and_repeat(sentences):
    def planned(seed, epoch):
        batches = plan_epoch(SOURCE, TARGET, 1000, seed, epoch, sentences)
        return [rows.tolist() for rows in batches]

    def longest(batches):
        return [max(SOURCE[rows].max(), TARGET[rows].max()) for rows in batches[:-1]]

    first = planned(1, 0)
    assert planned(1, 0) == first
    assert longest(first) != sorted(longest(first))
    sets = set(map(frozenset, first))
    for other in (planned(1, 1), planned(2, 0)):
        assert longest(other) != longest(first)
        assert set(map(frozenset, other)) != sets
        assert set(other[-1]) != set(first[-1])


def test_updates_hold_the_tokens_asked_for_on_average():
    made = list(islice(stream(Position()), 60))
    tokens = [update.tokens for update, _ in made]
    assert sum(tokens) == made[-1][1].tokens
    assert abs(sum(tokens) - 60 * 500) < 500
    assert all(u.tokens == sum(TARGET[rows].sum() for _, rows in u.batches) for u, _ in made)


@pytest.mark.parametrize(("sentences", "last"), [(24, 16), (50, 50), (400, 400)])
def test_an_epoch_of_updates_by_sentences_holds_each_once(sentences, last):
    count, orders = -(-400 // sentences), []
    made = list(islice(stream(Position(), sentences), 2 * count))
    for epoch in (0, 1):
        updates = made[epoch * count : (epoch + 1) * count]
        rows = [np.concatenate([rows for _, rows in update.batches]) for update, _ in updates]
        assert list(map(len, rows)) == [sentences] * (count - 1) + [last]
        assert sorted(np.concatenate(rows)) == list(range(400))
        assert updates[-1][1] == Position(epoch + 1, 0, int(TARGET.sum()) * (epoch + 1))
        orders.append(np.concatenate(rows).tolist())
        for update, _ in updates:
            for number, batch in update.batches:
                assert number == epoch
                assert len(batch) * max(SOURCE[batch].max(), TARGET[batch].max()) <= 120
    assert orders[0] != orders[1]


@pytest.mark.parametrize(("sentences", "epochs"), [(24, 3), (400, 2), (None, 1), (None, 4)])
def test_the_most_updates_are_known_beforehand(sentences, epochs):
    made = len(list(stream(Position(), sentences, epochs=epochs)))
    size = {"tokens_per_update": None if sentences else 500, "sentences_per_update": sentences}
    settings = systems.train(**size, max_updates=None, max_epochs=epochs)
    most = settings.update_limit(int(TARGET.sum()), len(TARGET))
    assert most == made if sentences else made <= most <= made + 1
    assert systems.train(**size, max_epochs=epochs).update_limit(10**9, 10**9) == 50
    assert systems.train(**size).update_limit(1, 1) == 50


def test_updates_by_sentences_are_drawn_at_random():
    """The mean lengths of updates vary as those of random samples, whose batches pad little."""
    lengths = np.random.default_rng(5).integers(2, 30, 6400)
    made = list(stream(Position(), 64, (lengths, lengths), max_tokens=300, epochs=1))
    means = [update.tokens / 64 for update, _ in made]
    assert np.std(means) == pytest.approx(lengths.std() / 64**0.5, rel=0.2)
    batches = [batch.rows for update, _ in made for batch in update.batches]
    padded = sum(len(rows) * lengths[rows].max() for rows in batches)
    assert lengths.sum() / padded > 0.8


@pytest.mark.parametrize("sentences", [None, 24])
def test_a_stream_continued_anywhere_is_the_same_stream(sentences):
    whole = list(islice(stream(Position(), sentences), 40))
    for cut in (1, 7, 16, 25):
        rest = islice(stream(whole[cut - 1][1], sentences), 40 - cut)
        for (ours, place), (expected, end) in zip(rest, whole[cut:], strict=True):
            assert place == end
            assert plain(ours) == plain(expected)


def test_a_sentence_beyond_the_limit_is_a_batch_of_its_own():
    lengths = np.array([5, 29, 30, 5, 5])
    batches = batch_by_size(lengths, lengths, np.arange(5), 20)
    assert [batch.tolist() for batch in batches] == [[0], [1], [2], [3, 4]]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    # with other words on the target side: of equal ones, equal merges would have equal ids
    train = [(source, target.replace("A", "OE")) for source, target in toy_pairs(80, 1)]
    sets = {"train": train, "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    root = tmp_path_factory.mktemp("corpus")
    return prepare(root, sets, units=merges(30, joint=False)).binary


def settings(dropout, max_tokens=10_000):
    return dataclasses.replace(SETTINGS, bpe_dropout=dropout, max_tokens=max_tokens)


def drawn(corpus, rows, seed, epoch):
    """Sentences as they are drawn, each on its own."""
    read_alone = BatchReader(corpus, settings(0.4), seed, LONGEST)
    batches = read_alone([PlannedBatch(epoch, np.array([row])) for row in rows])
    return PairIds([part.source[0] for (part,) in batches], [part.target[0] for (part,) in batches])


def pairs_of(parts):
    return sorted(pair for part in parts for pair in zip(*part, strict=True))


def test_dropout_depends_on_seed_epoch_and_sentence_alone(corpus):
    first = drawn(corpus, ROWS, seed=1, epoch=0)
    assert drawn(corpus, ROWS, seed=1, epoch=1) != first
    assert drawn(corpus, ROWS, seed=2, epoch=0) != first
    (together,) = BatchReader(corpus, settings(0.4), 1, LONGEST)([PlannedBatch(0, np.array(ROWS))])
    assert pairs_of(together) == pairs_of([first])


def test_dropout_changes_subwords_and_no_word(corpus):
    stored = read_ids(corpus, "train", np.array(ROWS))
    after = drawn(corpus, ROWS, seed=1, epoch=0)
    for language, old, new in zip(("de", "en"), stored, after, strict=True):
        decode = corpus.segmentation(language).decode
        assert [decode(ids) for ids in new] == [decode(ids) for ids in old]
        assert all(list(ids).index(EOS) == len(ids) - 1 for ids in new)
        assert sum(map(len, new)) > 1.1 * sum(map(len, old))


def test_equal_sides_are_drawn_apart(tmp_path):
    copies = [(source, source) for source, _ in toy_pairs(60, 1)]
    sets = {"train": copies, "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    after = drawn(prepare(tmp_path, sets, units=merges(30)).binary, ROWS, seed=1, epoch=0)
    assert sum(a != b for a, b in zip(*after, strict=True)) > 20


def test_batches_that_have_grown_are_cut_at_the_limit(corpus):
    rows = np.array(ROWS)
    source, target = (corpus.side("train", language).lengths for language in ("de", "en"))
    batches = [
        PlannedBatch(0, rows[part]) for part in batch_by_size(source[rows], target[rows], rows, 40)
    ]
    grown = BatchReader(corpus, settings(0.4, max_tokens=40), 1, LONGEST)(batches)
    assert len(grown) == len(batches)
    assert sum(map(len, grown)) > len(batches)
    for part in (part for parts in grown for part in parts):
        assert len(part.source) * max(map(len, part.source + part.target)) <= 40
    whole = [part for parts in grown for part in parts]
    assert pairs_of(whole) == pairs_of([drawn(corpus, ROWS, seed=1, epoch=0)])


def test_a_draw_beyond_the_models_limit_is_not_used(corpus):
    rows = list(range(79))  # all that the corpus has
    stored = read_ids(corpus, "train", np.array(rows))
    limit = max(map(len, stored.source + stored.target))
    draws = drawn(corpus, rows, seed=1, epoch=0)
    reader = BatchReader(corpus, settings(0.4), 1, limit)
    batches = reader([PlannedBatch(0, np.array([row])) for row in rows])
    kept = 0
    for side in range(2):
        for own, old, (part,) in zip(draws[side], stored[side], batches, strict=True):
            (ids,) = part[side]
            assert list(ids) == (list(own) if len(own) <= limit else list(old))
            kept += len(own) > limit
    assert kept > 2


def test_any_number_of_processes_reads_the_same(corpus):
    parts = [
        [PlannedBatch(epoch, rows)] for epoch in (0, 1) for rows in np.array(ROWS).reshape(10, 4)
    ]
    one, three = (
        list(map_parts(partial(BatchReader, corpus, settings(0.4), 1, LONGEST), parts, workers))
        for workers in (1, 3)
    )
    assert one == three


def test_a_batch_pads_and_shifts():
    sides = PairIds([[5, 6, EOS], [7, EOS]], [[8, EOS], [9, 10, 11, EOS]])
    batch = Batch.from_ids(sides)
    assert batch.source.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.target.tolist() == [[BOS, 8, EOS, PAD], [BOS, 9, 10, 11]]
    assert batch.labels.tolist() == [8, EOS, 9, 10, 11, EOS]
    assert batch.label_positions.tolist() == [0, 1, 4, 5, 6, 7]
    assert batch.lengths.tolist() == [[3, 2], [2, 4]]
    assert batch.has_padding
    assert not Batch.from_ids(PairIds([[5, EOS], [7, EOS]], sides.target)).has_padding


def plain(update):
    return [(epoch, rows.tolist()) for epoch, rows in update.batches]


def stream(start, sentences=None, lengths=(SOURCE, TARGET), **changes):
    settings = {"max_tokens": 120, "seed": 3, "start": start, **changes}
    tokens = None if sentences else 500
    return plan_updates(
        *lengths, tokens_per_update=tokens, sentences_per_update=sentences, **settings
    )
