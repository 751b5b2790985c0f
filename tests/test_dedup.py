import json

import pytest

from bleuprint import dedup
from bleuprint.dedup import dedup_folder
from bleuprint.errors import UserError
from bleuprint.pairs import Pair, TextFolder
from corpora import PAIRS, write_set


def run(tmp_path, **sets):
    before = TextFolder(tmp_path / "before", "de", "en")
    for name, pairs in sets.items():
        write_set(before, name.replace("_", "."), pairs)
    after, ledger = tmp_path / "after", tmp_path / "ledger.json"
    dedup_folder("c", before, after, ledger)
    return TextFolder(after, "de", "en"), json.loads(ledger.read_text())["sets"]


def test_the_first_of_equal_pairs_stays(tmp_path):
    a, b, c, *_ = PAIRS
    crossed = Pair(a.source, b.target)
    after, sets = run(tmp_path, train=[a, b, a, crossed, c, b, a])
    assert list(after.pairs("train")) == [a, b, crossed, c]
    assert sets["train"]["dropped"]["duplicate pair"] == 3
    numbers = [sample["pair"] for sample in sets["train"]["samples"]["duplicate pair"]]
    assert numbers == [3, 6, 7]


def test_what_is_held_out_leaves_train(tmp_path):
    a, b, c, d, e, _ = PAIRS
    train = [a, Pair(b.source, "x"), Pair("x", c.target), d, Pair(e.target, e.source)]
    after, sets = run(tmp_path, train=train, valid=[b, e], test_x=[c, a])
    assert list(after.pairs("train")) == [d, Pair(e.target, e.source)]
    assert sets["train"]["dropped"] == {
        "duplicate pair": 0,
        "source in valid or test": 2,
        "target in valid or test": 1,
    }
    assert list(after.pairs("valid")) == [b, e]
    assert list(after.pairs("test.x")) == [c, a]


def test_an_invisible_difference_does_not_hide_an_overlap(tmp_path):
    train = [Pair("über Nacht", "over night"), Pair("am Tag", "by day"), Pair("früh", "early")]
    odd = [("\ufeffu\u0308ber\u2028Nacht\r", "x"), ("y", " by\u200b day\x00")]
    after, _ = run(tmp_path, train=train, test_x=odd)
    assert list(after.pairs("train")) == train[2:]
    assert list(after.pairs("test.x")) == odd


def test_the_sides_are_not_confused(tmp_path):
    after, _ = run(tmp_path, train=[Pair("a b", "c"), Pair("a", "b c")])
    assert len(list(after.pairs("train"))) == 2


def test_hashes_that_end_in_zeros_are_compared_whole(tmp_path, monkeypatch):
    hashes = {"a\nA": b"x" + bytes(15), "b\nB": b"x\0\1" + bytes(13), "c\nC": bytes(16)}
    monkeypatch.setattr(dedup, "hash_of", lambda text: hashes[text])
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", [("a", "A"), ("b", "B"), ("c", "C"), ("c", "C"), ("a", "A")])
    assert dedup._repeated_pairs(folder) == {hashes["a\nA"], hashes["c\nC"]}


def test_nothing_left_names_the_rules(tmp_path):
    with pytest.raises(
        UserError, match=r"nothing left.*duplicate pair 0, source in valid or test 2"
    ):
        run(tmp_path, train=PAIRS[:2], valid=PAIRS[:2])
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize(
    ("known", "held_out"),
    [
        ("Il dort\u00a0!", "Il dort !"),  # French writes a no-break space here
        ("ein\u1680Mann", "ein Mann"),
        ("ein Mann", "Ein MANN"),
        ("die Straße", "DIE STRASSE"),
        ("\ufb01n", "fin"),
        ("a\u0308ndern", "\u00e4ndern"),
    ],
)
def test_spaces_case_and_compatible_forms_hide_no_overlap(tmp_path, known, held_out):
    train = [Pair(known, "one"), Pair("two", known), PAIRS[3]]
    after, sets = run(tmp_path, train=train, valid=[Pair(held_out, held_out)])
    assert list(after.pairs("train")) == [PAIRS[3]]
    assert sets["train"]["dropped"]["source in valid or test"] == 1
    assert sets["train"]["dropped"]["target in valid or test"] == 1
