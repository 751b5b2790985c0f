"""A stage can process a text in shards: consecutive parts of equal size."""

import pytest

from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize("total", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("pair_count", [0, 1, 5, 12, 1000])
def test_shards_contain_each_pair_once_in_order(total, pair_count):
    """A pair that is in no shard would be lost; a pair in two shards would be doubled."""
    indices = []
    for shard in Shard.all(total):
        start, stop = shard.bounds(pair_count)
        # None means the end of the text, where the reader checks that both files end.
        is_last = shard.number == total
        assert (stop is None) == is_last
        indices += range(start, pair_count if stop is None else stop)

    assert indices == list(range(pair_count))


def test_the_sizes_of_shards_differ_by_at_most_one_pair():
    """Shards are processed at the same time, so that the largest one decides how long it takes."""
    sizes = set()
    for shard in Shard.all(7):
        start, stop = shard.bounds(1000)
        if stop is None:  # The last shard.
            stop = 1000
        sizes.add(stop - start)

    assert sizes == {142, 143}  # 1000 / 7 = 142.9


def test_shards_are_in_the_order_of_their_numbers():
    """In alphabetical order, shard 10-of-11 would come second, with pairs from near the end."""
    names = [str(shard) for shard in Shard.all(11)]

    assert names[0] == "1-of-11"
    assert names[-2:] == ["10-of-11", "11-of-11"]


@pytest.mark.parametrize("number", [10, 11])
def test_the_name_of_a_shard_is_read_back(number):
    assert Shard.parse(f"{number}-of-11") == Shard(number, 11)


@pytest.mark.parametrize("text", ["0-of-3", "4-of-3", "1-of-0", "1/3", "01-of-3", "1-of-3 ", ""])
def test_a_text_that_names_no_shard_is_refused(text):
    with pytest.raises(UserError, match="Write it like 3-of-8"):
        Shard.parse(text)
