"""The stage clean: edits of the training text."""

import json

import pytest

from bleuprint.corpus.clean import Cleaning
from bleuprint.rules.rule import Edit
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair, TextFolder
from corpora import EDITS, PAIRS, write_set
from steps import run_sharded


def clean_corpus(tmp_path, edits=EDITS, shards=1):
    """Run the stage clean on the text in the folder raw.

    Args:
        tmp_path: The folder of the test, with the folder raw.
        edits: The edits of the stage; as default unicode (NFC) and non_printing.
        shards: The number of shards that the training text is divided into.

    Returns:
        The cleaned text, and the filtering statistics by set.
    """
    raw = TextFolder(tmp_path / "raw", "de", "en")
    stats_file = tmp_path / "filter_stats.json"
    step = Cleaning("c", raw, tmp_path / "clean", stats_file, edits)
    run_sharded(step, tmp_path / "shards", shards)
    return TextFolder(tmp_path / "clean", "de", "en"), json.loads(stats_file.read_text())["sets"]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_the_edits_compose_accents_and_replace_invisible_characters(tmp_path, shards):
    """The edit `unicode` composes accents; `non_printing` turns invisible characters to spaces."""
    # \ufeff is a byte order mark, e\u0301 an e with a combining accent, \x85 a line separator.
    unclean_pair = ("\ufeffe\u0301in  s\r", "o\x85ne")
    invisible_source = ("\u200b \x0c", "lost")
    invisible_target = ("verloren", "\x00")
    text = [PAIRS[0], unclean_pair, invisible_source, invisible_target]
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", text)

    clean, sets = clean_corpus(tmp_path, shards=shards)

    assert list(clean.pairs("train")) == [PAIRS[0], ("éin s", "o ne")]
    # Three pairs contain invisible characters; two of them are then empty and dropped.
    assert sets["train"]["changed"] == {"unicode": 1, "non_printing": 3}


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_pair_with_an_empty_side_after_the_edits_is_dropped(tmp_path, shards):
    """The edit `non_printing` replaces invisible characters by spaces."""
    invisible_source = ("\u200b \x0c", "lost")
    invisible_target = ("verloren", "\x00")
    text = [PAIRS[0], PAIRS[1], invisible_source, invisible_target]
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", text)

    clean, sets = clean_corpus(tmp_path, shards=shards)

    assert list(clean.pairs("train")) == [PAIRS[0], PAIRS[1]]
    assert sets["train"]["dropped"] == {"empty_side": 2}
    third_pair, fourth_pair = sets["train"]["samples"]["empty_side"]
    assert third_pair["pair"] == 3
    assert third_pair["target"] == "lost"
    assert fourth_pair["pair"] == 4
    assert fourth_pair["target"] == " "  # After the edit.


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_the_statistics_show_a_pair_before_and_after_an_edit(tmp_path, shards):
    """The edit `unicode` composes e and the combining accent \u0301 to \u00e9."""
    pair_to_compose = ("\ufeffe\u0301in  s\r", "o\x85ne")
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", [PAIRS[0], pair_to_compose])

    _, sets = clean_corpus(tmp_path, shards=shards)

    assert sets["train"]["samples"]["unicode"] == [
        {
            "pair": 2,
            "source": "\ufeffe\u0301in  s\r",
            "target": "o\x85ne",
            "new_source": "\ufeff\u00e9in  s\r",
            "new_target": "o\x85ne",
        }
    ]


def test_without_edits_a_sentence_keeps_its_spaces_and_an_empty_side_is_dropped(tmp_path):
    """`clean: {}` in the settings turns all edits off."""
    spaced_pair = (" zwei  Wörter\u00a0", "two\twords ")
    blank_pair = (" ", "lost")
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", [spaced_pair, blank_pair])

    clean, sets = clean_corpus(tmp_path, edits=())

    assert list(clean.pairs("train")) == [spaced_pair]
    assert sets["train"]["dropped"] == {"empty_side": 1}


def test_validation_and_test_sets_keep_every_byte(tmp_path):
    """Scores are comparable with published ones only if test sets stay as published."""
    raw = TextFolder(tmp_path / "raw", "de", "en")
    unclean_pairs = [("\ufeffe\u0301\r", ""), ("", "  \u2028 x\x00")]
    write_set(raw, "train", PAIRS)
    write_set(raw, "valid", unclean_pairs)
    write_set(raw, "test.t", unclean_pairs)

    clean, sets = clean_corpus(tmp_path)

    assert clean.set_names() == ["train", "valid", "test.t"]
    assert list(clean.pairs("valid")) == unclean_pairs
    assert list(clean.pairs("test.t")) == unclean_pairs
    assert sets["valid"]["pairs_out"] == 2
    assert sets["test.t"]["pairs_out"] == 2


def test_a_text_of_which_nothing_remains_is_an_error_that_leaves_no_output(tmp_path):
    """The only pair has an empty source, which the stage always drops."""
    pair_with_empty_source = ("", "x")
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", [pair_with_empty_source])

    counts = "1 pair in, 0 out; dropped by empty_side 1"
    with pytest.raises(UserError, match=f"^corpus c: clean dropped all pairs of train: {counts}$"):
        clean_corpus(tmp_path)

    assert not (tmp_path / "clean").exists()
    assert not (tmp_path / "filter_stats.json").exists()


def test_an_edit_that_inserts_a_line_break_is_named_with_the_sentence(tmp_path):
    """A line break in a sentence would shift all following lines against the other language."""

    class BreakLines(Edit):
        def edit(self, sentence, language):  # noqa: ARG002
            return sentence.replace("Katze", "Kat\nze")

    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", PAIRS)

    message = "rule break_lines: its edit of 'Die Katze"
    with pytest.raises(UserError, match=message):
        clean_corpus(tmp_path, edits=(BreakLines(),))


def test_an_edit_is_called_with_the_language_of_the_sentence(tmp_path):
    """The edit writes English in capitals; with the wrong language, it would change the German."""

    class UppercaseEnglish(Edit):
        def edit(self, sentence, language):
            return sentence.upper() if language == "en" else sentence

    pair = Pair("Morgen soll es regnen.", "It is said to rain tomorrow.")
    write_set(TextFolder(tmp_path / "raw", "de", "en"), "train", [pair])

    clean, _ = clean_corpus(tmp_path, edits=(UppercaseEnglish(),))

    expected = ("Morgen soll es regnen.", "IT IS SAID TO RAIN TOMORROW.")
    assert list(clean.pairs("train")) == [expected]
