"""Lines of several sentences: found by sentencex, translated one by one, joined."""

import pytest

from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.serving.sentence_translator import SentenceTranslator, split_sentences
from bleuprint.serving.translator import load_translator
from corpora import TORTURE


@pytest.fixture
def both(translator):
    """A translator of whole lines, and the one of sentences."""
    cell = Cell("micro", "toy", 1)
    return translator, load_translator(load(), cell, translator.decode, SentenceTranslator)


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Two dogs run. ", "Mr. Smith sleeps at 3.5 p.m. today! ", "Why?"]),
        ("en", ["1. The dog sleeps. ", "It dreams. 2."]),
        ("de", ["Am 3. Mai kommt Dr. Müller. ", "Das ist z. B. gut."]),
        ("ja", ["犬は寝ている。", "猫は起きている。"]),
        ("zh", ["你好。", "世界！"]),
        ("en", ["a sentence without an end"]),
        ("en", ["..."]),
        ("en", [""]),
        ("qqq", ["One. ", "Two."]),
    ],
)
def test_sentences_are_found(language, sentences):
    assert split_sentences("".join(sentences), language) == sentences


@pytest.mark.parametrize("odd", TORTURE)
def test_no_character_is_lost(odd):
    line = f"{odd}One.{odd} Two{odd}three. {odd}Four!{odd}{odd}"
    found = split_sentences(line, "en")
    assert "".join(found) == line and all(any(map(str.isalpha, each)) for each in found)
    assert split_sentences(f"one{odd}two", "en") == [f"one{odd}two"]


def test_one_line_out_for_each_in_joined_from_its_sentences(both):
    whole, split = both
    lines = ["be gibu. Gu dibe. Ba be!", "", "gi be", "Du be. \u2028", "be " * 300 + ". Ga ba."]
    found = split(lines)
    for line, each in zip(lines, found, strict=True):
        parts = whole(split_sentences(line, whole.corpus.source))
        assert each.best[0].text == " ".join(filter(None, (one.best[0].text for one in parts)))
        assert each.pieces == [piece for one in parts for piece in one.pieces]
    assert [len(each.pieces) for each in found] == [3, 0, 1, 1, 3]
    assert found[0].best[0].text != whole(lines[:1])[0].best[0].text
    assert [each.beyond > 0 for each in found] == [False, False, False, False, True]
    assert len(split.attention(found[0])) == 3


def test_a_single_sentence_is_translated_as_ever(both):
    whole, split = both
    lines = ["be ba gu.", "gi be", "", "Mr. Ba be?", "..."]
    assert split(lines, best=2) == whole(lines, best=2)


def test_chinese_and_japanese_are_joined_without_a_space(both, monkeypatch):
    whole, split = both
    texts = [each.best[0].text for each in whole(["be gibu. ", "Gu dibe."])]
    parts = whole(["be gibu. ", "Gu dibe."])
    monkeypatch.setattr(split, "target", "ja")
    assert isinstance(split, SentenceTranslator)
    assert split._joined(parts).best[0].text == "".join(texts)
