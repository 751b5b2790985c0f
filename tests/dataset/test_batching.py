"""Sentences are divided into batches: each once per epoch, within the limit, for any process."""

import tracemalloc
from functools import partial
from itertools import islice

import numpy as np
import pytest

import systems
from bleuprint.dataset import batching
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.dataset.batching import Position, batch_by_size, plan_epoch, plan_updates
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD


def random_lengths(count):
    """Return the lengths of source sentences, and of targets that are up to 3 tokens longer."""
    rng = np.random.default_rng(5)
    source_lengths = rng.integers(2, 30, count)
    target_lengths = np.clip(source_lengths + rng.integers(-3, 4, count), 2, None)
    return source_lengths, target_lengths


# The lengths of 400 sentence pairs.
SOURCE_LENGTHS, TARGET_LENGTHS = random_lengths(400)


def padded_size(rows, source_lengths=SOURCE_LENGTHS, target_lengths=TARGET_LENGTHS):
    """Return the number of tokens of the larger side of a batch, padding included."""
    return len(rows) * max(source_lengths[rows].max(), target_lengths[rows].max())


def test_an_epoch_contains_each_sentence_once_in_batches_within_the_limit():
    """The corpus has 400 sentence pairs; a batch is an array of their row numbers.

    `padded_size` is the number of tokens of the larger side of a batch, with padding.
    """
    max_tokens = 100

    batches = plan_epoch(SOURCE_LENGTHS, TARGET_LENGTHS, max_tokens, seed=1, epoch=0)

    assert sorted(np.concatenate(batches)) == list(range(400))
    for rows in batches:
        assert padded_size(rows) <= max_tokens


def test_less_than_five_percent_of_the_batches_is_padding():
    """Padding costs computing time; sentences of similar length need little of it."""
    source_lengths, target_lengths = random_lengths(4000)

    batches = plan_epoch(source_lengths, target_lengths, max_tokens=300, seed=1, epoch=0)

    for lengths in (source_lengths, target_lengths):
        padded_tokens = 0
        for rows in batches:
            padded_tokens += len(rows) * lengths[rows].max()
        assert lengths.sum() / padded_tokens > 0.95


def plan(seed, epoch, sentences_per_update):
    """Return the batches of an epoch of the 400 pairs, as lists of rows."""
    batches = plan_epoch(SOURCE_LENGTHS, TARGET_LENGTHS, 1000, seed, epoch, sentences_per_update)
    return [rows.tolist() for rows in batches]


def longest_lengths(batches):
    """Return the length of the longest sentence of each batch but the last one."""
    return [max(SOURCE_LENGTHS[rows].max(), TARGET_LENGTHS[rows].max()) for rows in batches[:-1]]


@pytest.mark.parametrize("sentences_per_update", [None, 24])
def test_an_epoch_is_the_same_when_it_is_planned_again(sentences_per_update):
    assert plan(1, 0, sentences_per_update) == plan(1, 0, sentences_per_update)


@pytest.mark.parametrize("sentences_per_update", [None, 24])
def test_the_batches_of_an_epoch_are_not_in_the_order_of_their_lengths(sentences_per_update):
    lengths = longest_lengths(plan(1, 0, sentences_per_update))

    assert lengths != sorted(lengths)


@pytest.mark.parametrize("sentences_per_update", [None, 24])
@pytest.mark.parametrize(
    ("seed", "epoch"),
    [pytest.param(1, 1, id="another epoch"), pytest.param(2, 0, id="another seed")],
)
def test_another_epoch_or_seed_has_other_batches_in_another_order(
    seed, epoch, sentences_per_update
):
    """Batches that repeat in every epoch would make the training less random.

    `plan` returns the batches of an epoch of 400 pairs; `longest_lengths` shows their order.
    """
    batches = plan(seed=1, epoch=0, sentences_per_update=sentences_per_update)
    other_batches = plan(seed, epoch, sentences_per_update)

    assert longest_lengths(other_batches) != longest_lengths(batches)
    assert set(map(frozenset, other_batches)) != set(map(frozenset, batches))
    assert set(other_batches[-1]) != set(batches[-1])


def plan_training(
    start=None,
    tokens_per_update=None,
    sentences_per_update=None,
    lengths=(SOURCE_LENGTHS, TARGET_LENGTHS),
    max_tokens=120,
    epochs=None,
):
    """Yield the updates of a training on the 400 pairs, each with the position after it.

    Args:
        start: The position from which the training continues; as default its start.
        tokens_per_update: The number of target tokens of an update, or
        sentences_per_update: its number of sentence pairs.
        lengths: The lengths of source and target sentences.
        max_tokens: The limit of a batch.
        epochs: The number of epochs; None for a training without end.
    """
    source_lengths, target_lengths = lengths
    plan_of_epoch = partial(
        plan_epoch,
        source_lengths,
        target_lengths,
        max_tokens,
        3,
        sentences_per_update=sentences_per_update,
    )
    return plan_updates(
        plan_of_epoch,
        tokens_per_update=tokens_per_update,
        sentences_per_update=sentences_per_update,
        start=start or Position(),
        epochs=epochs,
    )


def test_updates_have_on_average_the_requested_number_of_tokens():
    """An update of the weights needs one or more batches, whose tokens rarely add up exactly.

    Updates that are too large must be followed by smaller ones: after 60 updates, the sum may be
    off by less than one update.
    """
    tokens_per_update = 500

    updates = plan_training(tokens_per_update=tokens_per_update)
    first_60_updates = list(islice(updates, 60))

    total_tokens = sum(update.tokens for update, _ in first_60_updates)
    assert abs(total_tokens - 60 * tokens_per_update) < tokens_per_update
    _, position_after_last_update = first_60_updates[-1]
    assert position_after_last_update.tokens == total_tokens


def test_the_tokens_of_an_update_are_the_target_tokens_of_its_batches():
    """An update of the weights needs one or more batches."""
    for update, _ in islice(plan_training(tokens_per_update=500), 60):
        assert update.tokens == sum(TARGET_LENGTHS[rows].sum() for _, rows in update.batches)


@pytest.mark.parametrize(
    ("sentences_per_update", "update_sizes"),
    [
        pytest.param(24, [24] * 16 + [16], id="24 sentences, and 16 at the end of the epoch"),
        pytest.param(50, [50] * 8, id="50 sentences"),
        pytest.param(400, [400], id="the whole epoch in an update"),
    ],
)
def test_updates_by_sentences_contain_each_sentence_once_per_epoch(
    sentences_per_update, update_sizes
):
    """The corpus has 400 sentence pairs; the last update of an epoch may be smaller.

    `plan_training` yields the updates of the weights; each is a list of batches of row numbers, and
    comes with the position in the corpus after it.
    """
    updates = plan_training(sentences_per_update=sentences_per_update)
    tokens_per_epoch = int(TARGET_LENGTHS.sum())

    for epoch in (0, 1):
        rows_of_updates = []
        for _ in update_sizes:
            update, position = next(updates)
            rows_of_updates.append(np.concatenate([rows for _, rows in update.batches]))
            assert {batch.epoch for batch in update.batches} == {epoch}
        assert [len(rows) for rows in rows_of_updates] == update_sizes
        assert sorted(np.concatenate(rows_of_updates)) == list(range(400))
        # After an epoch: the next epoch, its first pair, and the tokens of all epochs so far.
        assert position == Position(epoch + 1, 0, tokens_per_epoch * (epoch + 1))


@pytest.mark.parametrize("sentences_per_update", [24, 50, 400])
def test_the_batches_of_updates_by_sentences_are_within_the_limit(sentences_per_update):
    """A batch that is larger than max_tokens would not fit into the memory of the GPU.

    An update of 24 or more sentences is therefore divided into several batches.
    """
    updates = plan_training(sentences_per_update=sentences_per_update, max_tokens=120, epochs=2)

    for update, _ in updates:
        for _, rows in update.batches:
            assert padded_size(rows) <= 120


@pytest.mark.parametrize("sentences_per_update", [24, 50, 400])
def test_updates_by_sentences_have_another_order_in_each_epoch(sentences_per_update):
    """The corpus has 400 sentence pairs; an update is a list of batches of row numbers."""
    rows_by_epoch = {0: [], 1: []}
    for update, _ in plan_training(sentences_per_update=sentences_per_update, epochs=2):
        for epoch, rows in update.batches:
            rows_by_epoch[epoch] += rows.tolist()

    assert rows_by_epoch[0] != rows_by_epoch[1]


@pytest.mark.parametrize(("sentences_per_update", "epochs"), [(24, 3), (400, 2)])
def test_the_number_of_updates_by_sentences_is_known_before_the_training(
    sentences_per_update, epochs
):
    """Learning-rate schedules that end at zero need the number of updates in advance.

    The settings limit the training by epochs, so that the number follows from the size of the
    corpus.
    """
    updates = plan_training(sentences_per_update=sentences_per_update, epochs=epochs)
    settings = systems.train(
        tokens_per_update=None,
        sentences_per_update=sentences_per_update,
        max_updates=None,
        max_epochs=epochs,
    )

    limit = settings.update_limit(int(TARGET_LENGTHS.sum()), len(TARGET_LENGTHS))

    assert limit == len(list(updates))


@pytest.mark.parametrize("epochs", [1, 4])
def test_the_estimated_number_of_updates_by_tokens_is_at_most_one_too_high(epochs):
    """Learning-rate schedules need the number, but batches rarely add up to 500 tokens."""
    updates = plan_training(tokens_per_update=500, epochs=epochs)
    settings = systems.train(tokens_per_update=500, max_updates=None, max_epochs=epochs)

    limit = settings.update_limit(int(TARGET_LENGTHS.sum()), len(TARGET_LENGTHS))

    update_count = len(list(updates))
    assert update_count <= limit <= update_count + 1


@pytest.mark.parametrize(
    "size",
    [
        {"tokens_per_update": None, "sentences_per_update": 24},
        {"tokens_per_update": 500, "sentences_per_update": None},
    ],
    ids=["by sentences", "by tokens"],
)
def test_max_updates_limits_the_updates_of_a_long_or_endless_training(size):
    """`update_limit` is the number of updates that a training on a corpus makes at most."""
    huge_corpus = (10**9, 10**9)  # Target tokens and sentence pairs.
    tiny_corpus = (1, 1)
    ends_after_3_epochs = systems.train(**size, max_updates=50, max_epochs=3)
    without_epochs = systems.train(**size, max_updates=50)

    assert ends_after_3_epochs.update_limit(*huge_corpus) == 50
    assert without_epochs.update_limit(*tiny_corpus) == 50


def test_the_mean_lengths_of_updates_by_sentences_vary_as_those_of_random_samples():
    """A batch contains sentences of similar length, but an update must be a random sample.

    The mean of 64 random sentences varies by the standard error: the standard deviation / 64 **
    0.5. Updates of sorted sentences would vary much more.
    """
    lengths = np.random.default_rng(5).integers(2, 30, 6400)
    updates = plan_training(
        sentences_per_update=64, lengths=(lengths, lengths), max_tokens=300, epochs=1
    )

    means = [update.tokens / 64 for update, _ in updates]

    standard_error = lengths.std() / 64**0.5
    assert np.std(means) == pytest.approx(standard_error, rel=0.2)


def test_less_than_a_fifth_of_updates_by_sentences_is_padding():
    """The sentences of an update are drawn at random, then sorted by length into batches.

    Padding costs computing time; without the sorting, there would be more of it.
    """
    lengths = np.random.default_rng(5).integers(2, 30, 6400)
    updates = plan_training(
        sentences_per_update=64, lengths=(lengths, lengths), max_tokens=300, epochs=1
    )

    padded_tokens = 0
    for update, _ in updates:
        for _, rows in update.batches:
            padded_tokens += len(rows) * lengths[rows].max()

    assert lengths.sum() / padded_tokens > 0.8


def update_as_lists(update):
    """Return the epoch and the rows of each batch of an update, as lists that can be compared."""
    return [(epoch, rows.tolist()) for epoch, rows in update.batches]


@pytest.mark.parametrize("finished_updates", [1, 7, 16, 25])
@pytest.mark.parametrize(
    "size",
    [{"tokens_per_update": 500}, {"sentences_per_update": 24}],
    ids=["by tokens", "by sentences"],
)
def test_a_training_that_continues_anywhere_has_the_same_updates(size, finished_updates):
    """A training that was interrupted continues from the position after its last update.

    It must see the same batches as one that was not interrupted, or results would differ.
    """
    planned = list(islice(plan_training(Position(), **size), 40))
    _, position = planned[finished_updates - 1]

    continued = islice(plan_training(position, **size), 40 - finished_updates)

    remaining = planned[finished_updates:]
    for (update, end), (expected_update, expected_end) in zip(continued, remaining, strict=True):
        assert end == expected_end
        assert update_as_lists(update) == update_as_lists(expected_update)


def test_an_update_by_sentences_is_planned_without_reading_the_whole_text():
    """Otherwise the time for an epoch would grow with the square of the number of sentences.

    Lengths of a million pairs take 4 MB, those of the 64 pairs of an update less than a kilobyte.
    """
    lengths = np.ones(1_000_000, np.int32)
    update_rows = np.arange(64, dtype=np.int32)

    tracemalloc.start()
    batching._sort_by_length(lengths, lengths, update_rows)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 100_000


def test_a_sentence_longer_than_the_limit_is_a_batch_of_its_own():
    """The limit is 20 tokens; sentences 1 and 2 have 29 and 30 tokens and cannot be left out."""
    lengths = np.array([5, 29, 30, 5, 5])

    batches = batch_by_size(lengths, lengths, rows=np.arange(5), max_tokens=20)

    assert [rows.tolist() for rows in batches] == [[0], [1], [2], [3, 4]]


def test_a_batch_has_padded_sources_and_shifted_targets():
    """The decoder predicts each label from the target tokens before it, beginning with BOS."""
    pairs = PairIds(
        source=[[5, 6, EOS], [7, EOS]],
        target=[[8, EOS], [9, 10, 11, EOS]],
    )

    batch = Batch.from_ids(pairs)

    assert batch.source.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    # The input of the decoder: BOS and the target without its last token.
    assert batch.target.tolist() == [[BOS, 8, EOS, PAD], [BOS, 9, 10, 11]]
    assert batch.labels.tolist() == [8, EOS, 9, 10, 11, EOS]
    # Positions in the flattened target, without padding.
    assert batch.label_positions.tolist() == [0, 1, 4, 5, 6, 7]
    assert batch.lengths.tolist() == [[3, 2], [2, 4]]  # Source and target length of each pair.


@pytest.mark.parametrize(
    ("sources", "has_padding"),
    [
        pytest.param([[5, 6, EOS], [7, EOS]], True, id="different lengths"),
        pytest.param([[5, EOS], [7, EOS]], False, id="equal lengths"),
    ],
)
def test_a_batch_has_padding_if_its_sources_differ_in_length(sources, has_padding):
    targets = [[8, EOS], [9, 10, 11, EOS]]

    assert Batch.from_ids(PairIds(sources, targets)).has_padding == has_padding
