import json

import pytest

from bleuprint.clean import clean_folder
from bleuprint.errors import UserError
from bleuprint.pairs import TextFolder
from bleuprint.settings import Clean
from corpora import PAIRS, write_set


def run(tmp_path, train=("a",), valid=(), form="NFC"):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    out, ledger = tmp_path / "clean", tmp_path / "ledger.json"
    clean_folder("c", Clean(form), train, valid, raw, out, ledger)
    return TextFolder(out, "de", "en"), json.loads(ledger.read_text())["sets"]


def test_parts_of_train_are_joined_in_the_order_of_the_settings(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    write_set(raw, "train.b", PAIRS[:2])
    write_set(raw, "train.a", PAIRS[2:4])
    clean, sets = run(tmp_path, train=("b", "a"))
    assert list(clean.pairs("train")) == PAIRS[:4]
    assert sets["train"]["pairs_in"] == sets["train"]["pairs_out"] == 4


def test_training_sentences_are_normalised_and_empty_ones_dropped(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    pairs = [("\ufeffe\u0301in  s\r", "o\x85ne"), ("\u200b \x0c", "lost"), ("verloren", "\x00")]
    write_set(raw, "train.a", pairs)
    clean, sets = run(tmp_path)
    assert list(clean.pairs("train")) == [("éin s", "o ne")]
    assert sets["train"]["dropped"] == {"empty side": 2}
    assert sets["train"]["samples"]["empty side"] == [
        {"pair": 2, "source": "", "target": "lost"},
        {"pair": 3, "source": "verloren", "target": ""},
    ]


def test_validation_and_test_sets_keep_every_byte(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    write_set(raw, "train.a", PAIRS)
    odd = [("\ufeffe\u0301\r", ""), ("", "  \u2028 x\x00")]
    for name in ("valid.x", "test.y"):
        write_set(raw, name, odd)
    raw.files("test.y")[0].write_bytes(b"one\r\n\x0c last without its end")
    clean, sets = run(tmp_path, valid=("x",))
    assert clean.names() == ["train", "valid", "test.y"]
    for before, after in (("valid.x", "valid"), ("test.y", "test.y")):
        for old, new in zip(raw.files(before), clean.files(after), strict=True):
            assert old.read_bytes() == new.read_bytes()
        assert sets[after]["pairs_out"] == 2


def test_parts_of_valid_are_joined_between_lines(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    write_set(raw, "train.a", PAIRS)
    for part in ("x", "y"):
        write_set(raw, f"valid.{part}", PAIRS[:2])
        for file in raw.files(f"valid.{part}"):
            file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    clean, _ = run(tmp_path, valid=("x", "y"))
    assert list(clean.pairs("valid")) == PAIRS[:2] * 2


def test_nothing_left_is_an_error_and_leaves_nothing(tmp_path):
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train.a", [("", "x")])
    with pytest.raises(
        UserError, match="corpus c: nothing left of train after clean: empty side 1"
    ):
        run(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["raw"]
