import json

import pytest

from bleuprint.corpus.clean import Cleaning
from bleuprint.rules.rule import Edit
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from corpora import EDITS, PAIRS, write_set
from steps import run_sharded


class Shout(Edit):
    def edit(self, sentence, language):
        return sentence.upper() if language == "en" else sentence


def run(tmp_path, edits=EDITS, shards=1):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    out, filter_stats = tmp_path / "clean", tmp_path / "filter_stats.json"
    run_sharded(Cleaning("c", raw, out, filter_stats, edits), tmp_path / "shards", shards)
    return TextFolder(out, "de", "en"), json.loads(filter_stats.read_text())["sets"]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_training_sentences_are_edited_and_empty_ones_dropped(tmp_path, shards):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    pairs = [("\ufeffe\u0301in  s\r", "o\x85ne"), ("\u200b \x0c", "lost"), ("verloren", "\x00")]
    write_set(raw, "train", [PAIRS[0], *pairs])
    clean, sets = run(tmp_path, shards=shards)
    assert list(clean.pairs("train")) == [PAIRS[0], ("éin s", "o ne")]
    assert sets["train"]["dropped"] == {"empty_side": 2}
    assert sets["train"]["changed"] == {"unicode": 1, "non_printing": 3}
    samples = sets["train"]["samples"]
    assert [(sample["pair"], sample["target"]) for sample in samples["empty_side"]] == [
        (3, "lost"),
        (4, " "),
    ]
    assert samples["unicode"] == [
        {
            "pair": 2,
            "source": "\ufeffe\u0301in  s\r",
            "target": "o\x85ne",
            "new_source": "\ufeff\u00e9in  s\r",
            "new_target": "o\x85ne",
        }
    ]


def test_without_edits_a_sentence_keeps_its_spaces(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    pairs = [(" zwei  Wörter\u00a0", "two\twords "), (" ", "lost")]
    write_set(raw, "train", pairs)
    clean, sets = run(tmp_path, edits=())
    assert list(clean.pairs("train")) == pairs[:1]
    assert sets["train"]["dropped"] == {"empty_side": 1}


def test_validation_and_test_sets_keep_every_byte(tmp_path):
    raw = TextFolder(tmp_path / "raw", "de", "en")
    write_set(raw, "train", PAIRS)
    odd = [("\ufeffe\u0301\r", ""), ("", "  \u2028 x\x00")]
    for name in ("valid", "test.t"):
        write_set(raw, name, odd)
    clean, sets = run(tmp_path)
    assert clean.names() == ["train", "valid", "test.t"]
    assert list(clean.pairs("valid")) == list(clean.pairs("test.t")) == odd
    assert sets["valid"]["pairs_out"] == sets["test.t"]["pairs_out"] == 2


def test_nothing_left_is_an_error_and_leaves_nothing(tmp_path):
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", [("", "x")])
    counts = "1 pair in, 0 out; dropped by empty_side 1"
    with pytest.raises(UserError, match=f"^corpus c: nothing left of train after clean: {counts}$"):
        run(tmp_path)
    assert not (tmp_path / "clean").exists() and not (tmp_path / "filter_stats.json").exists()


def test_an_edit_that_breaks_a_line_is_named(tmp_path):
    class BreakLines(Edit):
        def edit(self, sentence, language):  # noqa: ARG002
            return sentence.replace("Katze", "Kat\nze")

    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", PAIRS)
    message = "rule break_lines: it inserts a line break into 'Die Katze"
    with pytest.raises(UserError, match=message):
        run(tmp_path, edits=(BreakLines(),))


def test_an_edit_knows_the_language(tmp_path):
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", PAIRS[:2])
    clean, _ = run(tmp_path, edits=(Shout(),))
    assert list(clean.pairs("train")) == [(s, t.upper()) for s, t in PAIRS[:2]]
