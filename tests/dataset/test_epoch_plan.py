"""The plan of an epoch: the same batches as a plain implementation, also from a file."""

import numpy as np
import pytest

from bleuprint.dataset import batching
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.epoch_plan import EpochPlan, row_type
from bleuprint.runtime.file_errors import DamagedFile


def random_lengths(pair_count, seed=7):
    """Return the lengths of source and target sentences, of which some are much longer."""
    random = np.random.default_rng(seed)
    source_lengths = random.lognormal(2.5, 0.7, pair_count).astype(np.int64) + 2
    target_lengths = source_lengths + random.integers(-1, 5, pair_count)
    return source_lengths, target_lengths


def plain_batches(lengths, rows, max_tokens):
    """Sort pairs by their lengths, and fill one batch after the other, as lists of rows."""
    by_row = {row: (int(lengths[0][row]), int(lengths[1][row])) for row in rows}

    def sort_key(row):
        longer = max(by_row[row])
        difference = by_row[row][0] - by_row[row][1]
        return longer, difference if longer % 2 == 1 else -difference

    batches = []
    batch = []
    for row in sorted(rows, key=sort_key):
        longest = max(max(by_row[other]) for other in [*batch, row])
        if batch and longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(row)
    if batch:
        batches.append(batch)
    return batches


def plain_plan(lengths, max_tokens, seed, epoch, sentences_per_update):
    """Return the batches of an epoch as lists of rows, as bleuprint 1.0 planned them."""
    random = np.random.Generator(np.random.PCG64((seed, epoch)))
    rows = random.permutation(len(lengths[0])).tolist()
    if sentences_per_update is None:
        batches = plain_batches(lengths, rows, max_tokens)
        return [batches[index] for index in random.permutation(len(batches))]
    batches = []
    for start in range(0, len(rows), sentences_per_update):
        update_rows = rows[start : start + sentences_per_update]
        batches += plain_batches(lengths, update_rows, max_tokens)
    return batches


@pytest.mark.parametrize("sentences_per_update", [None, 1, 17, 5000])
@pytest.mark.parametrize("pair_count", [1, 2, 700])
@pytest.mark.parametrize("max_tokens", [1, 60, 100_000])
def test_a_plan_has_the_batches_of_a_plain_implementation(
    monkeypatch, pair_count, max_tokens, sentences_per_update
):
    """Lengths are read in parts of 64 pairs here, so that batches continue in the next part."""
    monkeypatch.setattr(batching, "_PAIRS_AT_ONCE", 64)
    lengths = random_lengths(pair_count)
    small_lengths = [side.astype(np.int32) for side in lengths]

    for epoch in range(3):
        plan = plan_epoch(*lengths, max_tokens, 5, epoch, sentences_per_update)
        plan_of_small = plan_epoch(*small_lengths, max_tokens, 5, epoch, sentences_per_update)

        expected = plain_plan(lengths, max_tokens, 5, epoch, sentences_per_update)
        assert [rows.tolist() for rows in plan] == expected
        assert [rows.tolist() for rows in plan_of_small] == expected
        expected_tokens = [int(lengths[1][rows].sum()) for rows in expected]
        assert plan.tokens.tolist() == expected_tokens


def test_a_batch_consists_of_64_bit_rows_although_the_plan_has_smaller_ones():
    """BPE-dropout sends the rows of batches to other processes, and each takes part in a sum."""
    plan = plan_epoch(*random_lengths(10), 100, 1, 0)

    assert plan.rows.dtype == np.int32
    assert plan[0].dtype == np.int64


def test_there_is_no_batch_after_the_last_one():
    plan = plan_epoch(*random_lengths(10), 100, 1, 0)

    with pytest.raises(IndexError):
        plan[len(plan)]


@pytest.mark.parametrize("pair_count", [0, 1, 700])
def test_a_plan_is_the_same_when_it_is_read_from_a_file(tmp_path, pair_count):
    plan = plan_epoch(*random_lengths(pair_count), 200, 1, 0)

    plan.write(tmp_path / "plan")
    read = EpochPlan.read(tmp_path / "plan")

    assert read.rows.tolist() == plan.rows.tolist()
    assert read.ends.tolist() == plan.ends.tolist()
    assert read.tokens.tolist() == plan.tokens.tolist()


def test_a_plan_can_be_used_after_its_file_was_removed(tmp_path):
    plan = plan_epoch(*random_lengths(700), 200, 1, 0)
    plan.write(tmp_path / "plan")

    read = EpochPlan.read(tmp_path / "plan")
    (tmp_path / "plan").unlink()

    assert [rows.tolist() for rows in read] == [rows.tolist() for rows in plan]


@pytest.mark.parametrize("missing_bytes", [1, 4, 700])
def test_a_file_that_was_cut_is_refused(tmp_path, missing_bytes):
    path = tmp_path / "plan"
    plan_epoch(*random_lengths(700), 200, 1, 0).write(path)
    content = path.read_bytes()

    path.write_bytes(content[:-missing_bytes])

    with pytest.raises(DamagedFile, match=f"it has {len(content) - missing_bytes} bytes instead"):
        EpochPlan.read(path)


def test_rows_have_64_bits_only_in_a_text_of_more_than_two_billion_pairs():
    assert row_type(2**31) == np.int32
    assert row_type(2**31 + 1) == np.int64
