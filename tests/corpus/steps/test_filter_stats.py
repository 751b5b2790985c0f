"""The counts of a stage are written by set; a set of which nothing is left is an error."""

import pytest

from bleuprint.corpus.steps.filter_stats import FilterStats, NothingLeft, read_filter_stats
from bleuprint.text.parallel import Pair


def test_counts_of_all_sets_are_read_back(tmp_path):
    filter_stats = FilterStats(
        "filter", "own", "fingerprint", rules=("length", "length_ratio"), edits=("unicode",)
    )
    train = filter_stats.add_set("train")
    train.count_kept(3)
    train.record_dropped("length_ratio", 7, Pair("a b c", "a"))
    train.record_changed("unicode", 2, Pair("A", "b"), Pair("a", "b"))
    filter_stats.add_set("valid")  # empty before as well
    filter_stats.write(tmp_path / "filter_stats.json")
    sets = read_filter_stats(tmp_path / "filter_stats.json")
    assert list(sets) == ["train", "valid"]
    found = sets["train"]
    assert (found.pairs_in, found.pairs_out) == (4, 3)
    assert found.dropped == {"length": 0, "length_ratio": 1}
    assert found.changed == {"unicode": 1}
    assert found.samples == {
        "length_ratio": [{"pair": 7, "source": "a b c", "target": "a"}],
        "unicode": [
            {"pair": 2, "source": "A", "target": "b", "new_source": "a", "new_target": "b"}
        ],
    }


def test_a_set_of_which_nothing_is_left_is_an_error(tmp_path):
    filter_stats = FilterStats("filter", "own", "fingerprint", rules=("length",))
    filter_stats.add_set("train").count_kept(2)
    filter_stats.add_set("valid").record_dropped("length", 1, Pair("a", "b"))
    with pytest.raises(NothingLeft, match=r"^corpus own: nothing left of valid after filter: "):
        filter_stats.write(tmp_path / "filter_stats.json")
    assert not (tmp_path / "filter_stats.json").exists()
