import json

import pytest

from bleuprint.errors import UserError
from bleuprint.filter import filter_folder, judge
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Filter
from corpora import PAIRS, write_set

BOUNDS = Filter(min_words=2, max_words=6, max_ratio=2.0)


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        (2, 2, None),
        (1, 2, "too short"),
        (2, 1, "too short"),
        (6, 6, None),
        (7, 6, "too long"),
        (6, 7, "too long"),
        (2, 4, None),
        (4, 2, None),
        (5, 2, "length ratio"),
        (2, 5, "length ratio"),
    ],
)
def test_bounds_are_inclusive_and_for_both_sides(source, target, rule):
    assert judge(Pair("w " * source, " ".join("w" * target)), BOUNDS) == rule


def test_only_train_is_filtered_and_accounted_for(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    good, short, long = Pair("a b", "c d"), Pair("a", "b c"), Pair("w " * 9, "a b c d e f")
    write_set(before, "train", [short, good, long, good])
    write_set(before, "valid", [short, long])
    ledger = tmp_path / "ledger.json"
    filter_folder("c", BOUNDS, before, tmp_path / "after", ledger)
    after = TextFolder(tmp_path / "after", "de", "en")
    assert list(after.pairs("train")) == [good, good]
    assert list(after.pairs("valid")) == [short, long]
    train = json.loads(ledger.read_text())["sets"]["train"]
    assert (train["pairs_in"], train["pairs_out"]) == (4, 2)
    assert train["dropped"] == {"too short": 1, "too long": 1, "length ratio": 0}


def test_nothing_left_says_what_each_rule_dropped(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "train", [*[Pair("w " * 9, "x")] * 2, *PAIRS[:1]])
    with pytest.raises(UserError) as error:
        filter_folder("m", Filter(2, 3, 9.0), before, tmp_path / "after", tmp_path / "l.json")
    assert str(error.value) == (
        "corpus m: nothing left of train after filter: too short 2, too long 1, length ratio 0"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["before"]
