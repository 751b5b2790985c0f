import pytest

from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime.errors import UserError


@pytest.mark.parametrize("of", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("pairs", [0, 1, 5, 12, 1000])
def test_shards_hold_each_pair_once_in_order(of, pairs):
    held = []
    for shard in Shard.all(of):
        start, stop = shard.bounds(pairs)
        assert (stop is None) == (shard.number == of)
        held += range(start, pairs if stop is None else stop)
    assert held == list(range(pairs))


def test_shards_are_as_large_as_each_other():
    bounds = [shard.bounds(1000) for shard in Shard.all(7)]
    assert {(1000 if stop is None else stop) - start for start, stop in bounds} == {142, 143}


def test_shards_are_in_the_order_of_their_numbers():
    assert [str(shard) for shard in Shard.all(11)][-2:] == ["10-of-11", "11-of-11"]
    assert Shard.parse("10-of-11") == Shard(10, 11)
    assert Shard.parse("11-of-11") == Shard(11, 11)


@pytest.mark.parametrize("text", ["0-of-3", "4-of-3", "1-of-0", "1/3", "01-of-3", "1-of-3 ", ""])
def test_what_names_no_shard_is_refused(text):
    with pytest.raises(UserError, match="Write it like 3-of-8"):
        Shard.parse(text)
