"""Batches with BPE-dropout: words are split into other subwords in each epoch."""

from functools import partial

import numpy as np
import pytest

import systems
from bleuprint.dataset.batch import PairIds, read_ids
from bleuprint.dataset.batching import PlannedBatch, batch_by_size
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.runtime.process_pool import map_parts
from bleuprint.training.data_loader import BatchReader
from prepared import prepare
from trainings import bpe_units, toy_pairs

# The first 40 sentence pairs of the training text.
ROWS = list(range(40))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A binarized corpus of 80 training pairs, of which one is dropped as a duplicate."""
    # With other words on the target side: equal words and merges would have equal ids.
    train = [(source, target.replace("A", "OE")) for source, target in toy_pairs(80, 1)]
    sets = {"train": train, "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    root = tmp_path_factory.mktemp("corpus")
    return prepare(root, sets, units=bpe_units(30, joint=False)).binary


def batch_reader(corpus, seed=1, max_tokens=10_000, max_positions=1000):
    """Return a reader of batches with a BPE-dropout of 0.4."""
    settings = systems.train(tokens_per_update=10_000, bpe_dropout=0.4, max_tokens=max_tokens)
    return BatchReader(corpus, settings, seed, max_positions)


def read_one_by_one(corpus, rows, seed, epoch):
    """Return sentence pairs with BPE-dropout, each read as a batch of its own."""
    batches = [PlannedBatch(epoch, np.array([row])) for row in rows]
    pairs = PairIds([], [])
    for parts in batch_reader(corpus, seed)(batches):
        assert len(parts) == 1
        pairs.source.extend(parts[0].source)
        pairs.target.extend(parts[0].target)
    return pairs


def sorted_pairs(parts):
    """Return the sentence pairs of all parts of batches, sorted."""
    pairs = []
    for part in parts:
        pairs += zip(part.source, part.target, strict=True)
    return sorted(pairs)


@pytest.mark.parametrize(
    ("seed", "epoch"),
    [pytest.param(1, 1, id="another epoch"), pytest.param(2, 0, id="another seed")],
)
def test_dropout_depends_on_seed_and_epoch(corpus, seed, epoch):
    """BPE-dropout splits words into other subwords in each epoch."""
    pairs = read_one_by_one(corpus, ROWS, seed=1, epoch=0)

    assert read_one_by_one(corpus, ROWS, seed, epoch) != pairs


def test_dropout_does_not_depend_on_the_other_sentences_of_a_batch(corpus):
    """BPE-dropout splits words at random, from a seed per sentence and epoch.

    So the same subwords are drawn whether sentences are read one by one or as a batch.
    """
    pairs = read_one_by_one(corpus, ROWS, seed=1, epoch=0)
    batch_of_all_rows = PlannedBatch(epoch=0, rows=np.array(ROWS))

    parts = batch_reader(corpus, seed=1)([batch_of_all_rows])[0]

    assert sorted_pairs(parts) == sorted_pairs([pairs])


@pytest.mark.parametrize(("side", "language"), [("source", "de"), ("target", "en")])
def test_dropout_splits_the_same_words_into_more_subwords(corpus, side, language):
    """BPE-dropout skips merges, so that words are split into smaller subwords.

    The corpus stores the subwords without dropout; a reader splits them again.
    """
    stored_sentences = getattr(read_ids(corpus, "train", np.array(ROWS)), side)

    sentences = getattr(read_one_by_one(corpus, ROWS, seed=1, epoch=0), side)

    decode = corpus.segmentation(language).decode
    for ids, stored_ids in zip(sentences, stored_sentences, strict=True):
        assert decode(ids) == decode(stored_ids)
        assert list(ids).index(EOS) == len(ids) - 1
    subwords = sum(map(len, sentences))
    stored_subwords = sum(map(len, stored_sentences))
    assert subwords > 1.1 * stored_subwords


def test_dropout_splits_equal_sides_of_a_pair_differently(tmp_path):
    """If both sides drew the same random numbers, a copied sentence would be split in the same way.

    Here, source and target are the same text, with a joint vocabulary.
    """
    copies = [(source, source) for source, _ in toy_pairs(60, 1)]
    sets = {"train": copies, "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    corpus = prepare(tmp_path, sets, units=bpe_units(30)).binary

    pairs = read_one_by_one(corpus, ROWS, seed=1, epoch=0)

    different_count = 0
    for source, target in zip(pairs.source, pairs.target, strict=True):
        if source != target:
            different_count += 1
    assert different_count > len(ROWS) / 2


def test_batches_that_grow_beyond_the_limit_by_dropout_are_divided(corpus):
    """BPE-dropout splits words into smaller subwords: a planned batch may become too large.

    The batches are planned for 40 tokens without dropout, and must be at most as large with it.
    """
    rows = np.array(ROWS)
    source_lengths = corpus.side("train", "de").lengths[rows]
    target_lengths = corpus.side("train", "en").lengths[rows]
    batches = []
    for batch_rows in batch_by_size(source_lengths, target_lengths, rows, max_tokens=40):
        batches.append(PlannedBatch(0, rows[batch_rows]))

    parts_of_batches = batch_reader(corpus, seed=1, max_tokens=40)(batches)

    assert len(parts_of_batches) == len(batches)
    # The parts of all batches in a row.
    parts = []
    for parts_of_batch in parts_of_batches:
        parts += parts_of_batch
    assert len(parts) > len(batches)
    for part in parts:
        longest = max(map(len, part.source + part.target))
        assert len(part.source) * longest <= 40
    expected_pairs = read_one_by_one(corpus, ROWS, seed=1, epoch=0)
    assert sorted_pairs(parts) == sorted_pairs([expected_pairs])


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_sentence_that_dropout_makes_too_long_for_the_model_keeps_its_subwords(corpus, side):
    """BPE-dropout makes sentences longer; a model has positions for the longest one without it."""
    rows = list(range(79))  # All pairs of the corpus.
    stored = read_ids(corpus, "train", np.array(rows))
    longest = max(map(len, stored.source + stored.target))
    split_by_dropout = read_one_by_one(corpus, rows, seed=1, epoch=0)

    reader = batch_reader(corpus, seed=1, max_positions=longest)
    batches = reader([PlannedBatch(0, np.array([row])) for row in rows])

    for row in rows:
        expected = getattr(split_by_dropout, side)[row]
        if len(expected) > longest:
            expected = getattr(stored, side)[row]  # The subwords without dropout.
        sentence = getattr(batches[row][0], side)[0]
        assert list(sentence) == list(expected)


def test_dropout_makes_some_sentences_of_the_corpus_too_long(corpus):
    """Otherwise, the test of sentences that dropout makes too long would check nothing.

    A sentence is too long if it has more subwords than the longest one without dropout.
    """
    rows = list(range(79))
    stored = read_ids(corpus, "train", np.array(rows))
    longest = max(map(len, stored.source + stored.target))

    pairs = read_one_by_one(corpus, rows, seed=1, epoch=0)

    lengths = np.array(list(map(len, pairs.source + pairs.target)))
    assert (lengths > longest).sum() > 2


def test_dropout_does_not_depend_on_the_number_of_processes(corpus):
    """BPE-dropout splits words at random; the number of processes must not change how."""
    work = []
    for epoch in (0, 1):
        for rows in np.array(ROWS).reshape(10, 4):
            work.append([PlannedBatch(epoch, rows)])
    settings = systems.train(tokens_per_update=10_000, max_tokens=10_000, bpe_dropout=0.4)
    create_reader = partial(BatchReader, corpus, settings, 1, 1000)

    pairs_of_one_process = list(map_parts(create_reader, work, 1))
    pairs_of_three_processes = list(map_parts(create_reader, work, 3))

    assert pairs_of_one_process == pairs_of_three_processes
