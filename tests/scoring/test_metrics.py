"""Scores equal sacreBLEU's command line, run beside, and figures worked by hand."""

import numpy as np
import pytest

import result_trees as trees
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.bleu_variants import VARIANTS
from measuring import bleu, chrf, measure, ter, texts_of
from scoring import SEPARATORS, sacrebleu, text


@pytest.mark.parametrize("language", ["de", "zh"])
def test_scores_equal_the_command_line(tmp_path, language):
    references, good, worse = text(language)
    good[::7] = worse[::7]
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", good)
    ours = bleu(good, references, language), chrf(good, references), ter(good, references)
    options = ("-l", f"en-{language}", "-m", "bleu", "chrf", "ter", "--confidence")
    found = sacrebleu(tmp_path / "references", *options, "-i", tmp_path / "hypotheses")
    for mine, theirs in zip(ours, found, strict=True):
        assert 0 < theirs["score"] < 100 and theirs["confidence_var"] > 0
        assert mine["value"] == theirs["score"]
        assert mine["signature"] == theirs["signature"]
        mean, half = theirs["confidence_mean"], theirs["confidence_var"]
        assert (mine["ci_low"], mine["ci_high"]) == (round(mean - half, 6), round(mean + half, 6))
    words = ("-m", "chrf", "--chrf-word-order", "2", "--confidence")
    theirs = sacrebleu(tmp_path / "references", *words, "-i", tmp_path / "hypotheses")
    mine = measure("chrf2pp", texts_of(good, references))
    assert (mine["value"], mine["signature"]) == (theirs["score"], theirs["signature"])
    assert "|nw:2|" in mine["signature"] and mine["value"] != ours[1]["value"]
    assert f"tok:{'zh' if language == 'zh' else '13a'}|" in ours[0]["signature"]
    ratio = measure("length_ratio", texts_of(good, references, language))["value"]
    assert f" ratio = {ratio:.3f} " in found[0]["verbose_score"]


@pytest.mark.parametrize(
    ("languages", "tokenizer"),
    [
        ("zh zho cmn yue wuu nan hak gan hsn cdo lzh", "zh"),
        ("bo bod dz dzo th lo km my", "char"),
        ("de shn nod ii vi", "13a"),
    ],
)
def test_the_tokenizer_of_a_language(languages, tokenizer):
    for language in languages.split():
        assert f"|tok:{tokenizer}|" in bleu(["a b c d"], ["a b c d"], language)["signature"]


def test_ter_has_no_upper_end():
    worse = ter(["a b c d e f g h"] * 2, ["a"] * 2)  # 7 words too many for a reference of one
    assert worse["value"] == worse["ci_low"] == worse["ci_high"] == 700


def test_an_interval_stays_on_the_scale():
    references = [f"one two three four five {i}" for i in range(30)]
    nearly = [*references[:-1], "nothing of it"]
    for result in (bleu(nearly, references, "en"), chrf(nearly, references)):
        assert 0 < result["ci_low"] < result["value"] < result["ci_high"] <= 100
    hardly = bleu([references[0], *["x y"] * 29], references, "en")
    assert 0 == hardly["ci_low"] < hardly["value"] < hardly["ci_high"]
    nothing = bleu(["x"] * 30, references, "en")
    assert (nothing["value"], nothing["ci_low"], nothing["ci_high"]) == (0, 0, 0)


def test_sacrebleus_own_warning_which_names_no_file_is_off(caplog):
    lines = texts_of(["a b c d ."] * 100, ["a b c d ."] * 100)
    assert [measure(key, lines)["value"] for key in ("bleu", *VARIANTS)] == [100] * 7
    assert "detokenize" not in caplog.text


def test_torture_text_equals_the_command_line_on_files(tmp_path):
    odd = [*SEPARATORS, "\ufeff", "\u202e", "\x00", "😀\u200d", "\t", "ــ", "e\u0301"]
    references = [
        f"the {mark} sentence {mark}{i} is short {mark}" for i, mark in enumerate(odd * 3)
    ]
    good = [
        line.replace("short", "long") if i % 5 == 0 else line for i, line in enumerate(references)
    ]
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", good)
    ours = bleu(good, references, "en"), chrf(good, references), ter(good, references)
    options = ("-m", "bleu", "chrf", "ter", "-i", tmp_path / "hypotheses")
    theirs = sacrebleu(tmp_path / "references", *options)
    assert [one["value"] for one in ours] == [one["score"] for one in theirs]


@pytest.mark.parametrize(("language", "extra"), [("ja", "ja"), ("jpn", "ja"), ("ko", "ko")])
def test_a_tokenizer_that_is_not_installed(monkeypatch, language, extra):
    for module in ("tokenizer_ja_mecab.MeCab", "tokenizer_ko_mecab.MeCab"):
        monkeypatch.setattr(f"sacrebleu.tokenizers.{module}", None)
    with pytest.raises(UserError, match=rf"pip install -c constraints.txt 'sacrebleu\[{extra}\]'"):
        bleu(["a"], ["a"], language)


def test_translations_of_nothing_score_nothing():
    references = ["the cat sat", "on the mat", "all day"]
    nothing = texts_of(["", "", ""], references)
    for key in ("bleu", "chrf2", "chrf2pp", "length_ratio"):
        assert measure(key, nothing)["value"] == 0, key
    assert measure("ter", nothing)["value"] == 100


def test_ter_of_lines_without_a_reference():
    """A resample of the first line alone has no reference, and TER 100; the second alone, too."""
    result = ter(["a", ""], ["", "b"])
    assert result["value"] == 200
    # With sacreBLEU's seed, 480 of the 1,000 resamples contain both lines and have TER 200. The
    # interval is the mean, 148, plus and minus half the distance from 100 to 200.
    lines = np.random.default_rng(12345).choice(2, size=(1000, 2))
    assert (lines[:, 0] != lines[:, 1]).sum() == 480
    assert (result["ci_low"], result["ci_high"]) == (98, 198)
