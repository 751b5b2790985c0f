"""The counts of a stage are written by set; a set of which nothing is left is an error."""

import pytest

from bleuprint.corpus.steps.filter_stats import FilterStats, NothingLeft, read_filter_stats
from bleuprint.text.parallel import Pair


def test_the_counts_of_all_sets_are_read_back(tmp_path):
    """A pair is kept, dropped by a rule, or changed by an edit; a changed pair is also kept."""
    filter_stats = FilterStats(
        "filter", "own", "fingerprint", rules=("length", "length_ratio"), edits=("unicode",)
    )
    train = filter_stats.add_set("train")
    train.count_kept(3)
    # Pair 7 is dropped; the source of pair 2 is changed from A to a.
    train.record_dropped("length_ratio", 7, Pair("a b c", "a"))
    train.record_changed("unicode", 2, Pair("A", "b"), Pair("a", "b"))
    filter_stats.add_set("valid")  # A set without pairs, before and after the stage.

    filter_stats.write(tmp_path / "filter_stats.json")
    sets = read_filter_stats(tmp_path / "filter_stats.json")

    assert list(sets) == ["train", "valid"]
    assert sets["train"].pairs_in == 4  # Three kept pairs and a dropped one.
    assert sets["train"].pairs_out == 3
    assert sets["train"].dropped == {"length": 0, "length_ratio": 1}
    assert sets["train"].changed == {"unicode": 1}
    assert sets["train"].samples == {
        "length_ratio": [{"pair": 7, "source": "a b c", "target": "a"}],
        "unicode": [
            {"pair": 2, "source": "A", "target": "b", "new_source": "a", "new_target": "b"}
        ],
    }


def test_a_set_whose_pairs_are_all_dropped_is_an_error_that_leaves_no_file(tmp_path):
    """The next stage must not start with an empty set, such as `valid` here."""
    filter_stats = FilterStats("filter", "own", "fingerprint", rules=("length",))
    filter_stats.add_set("train").count_kept(2)
    filter_stats.add_set("valid").record_dropped("length", 1, Pair("a", "b"))

    with pytest.raises(NothingLeft, match=r"^corpus own: filter dropped all pairs of valid: "):
        filter_stats.write(tmp_path / "filter_stats.json")

    assert not (tmp_path / "filter_stats.json").exists()
