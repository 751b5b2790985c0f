"""Batches: every sentence once an epoch, within the limit, the same for every process."""

from itertools import islice

import numpy as np
import pytest

from bleuprint.batches import Position, plan, updates
from bleuprint.errors import UserError

LENGTHS = np.random.default_rng(5)
SOURCE = LENGTHS.integers(2, 30, 400)
TARGET = np.clip(SOURCE + LENGTHS.integers(-3, 4, 400), 2, None)


def test_an_epoch_holds_every_sentence_once_within_the_limit() -> None:
    batches = plan(SOURCE, TARGET, 100, seed=1, epoch=0)
    assert sorted(np.concatenate(batches)) == list(range(400))
    for rows in batches:
        assert len(rows) * max(SOURCE[rows].max(), TARGET[rows].max()) <= 100


def test_batches_waste_little_on_padding() -> None:
    batches = plan(SOURCE, TARGET, 300, seed=1, epoch=0)
    padded = sum(len(rows) * TARGET[rows].max() for rows in batches)
    assert TARGET.sum() / padded > 0.95


def test_epochs_and_seeds_differ_and_repeat() -> None:
    def first(seed: int, epoch: int) -> list[int]:
        return np.concatenate(plan(SOURCE, TARGET, 100, seed, epoch)).tolist()

    assert first(1, 0) == first(1, 0)
    assert first(1, 0) != first(1, 1)
    assert first(1, 0) != first(2, 0)


def test_updates_hold_the_tokens_asked_for_on_average() -> None:
    made = list(islice(stream(Position()), 60))
    tokens = [update.tokens for update, _ in made]
    assert sum(tokens) == made[-1][1].tokens
    assert abs(sum(tokens) - 60 * 500) < 500
    assert all(u.tokens == sum(TARGET[rows].sum() for rows in u.batches) for u, _ in made)


def test_a_stream_continued_anywhere_is_the_same_stream() -> None:
    whole = list(islice(stream(Position()), 40))
    for cut in (1, 7, 25):
        rest = islice(stream(whole[cut - 1][1]), 40 - cut)
        for (ours, place), (expected, end) in zip(rest, whole[cut:], strict=True):
            assert place == end
            assert [b.tolist() for b in ours.batches] == [b.tolist() for b in expected.batches]


def test_a_sentence_beyond_the_limit_is_named() -> None:
    with pytest.raises(UserError, match=r"29 tokens does not fit into train.batch_tokens 20"):
        plan(np.array([5, 29]), np.array([5, 7]), 20, 1, 0)


def stream(start: Position):  # type: ignore[no-untyped-def]
    return updates(SOURCE, TARGET, tokens_per_update=500, batch_tokens=120, seed=3, start=start)
