import json

import pytest

from bleuprint import workers
from bleuprint.moses import Moses
from bleuprint.pairs import Pair, TextFolder
from bleuprint.settings import Tokenize
from bleuprint.tokenizer import tokenize_folder
from corpora import PAIRS, TORTURE, write_set


@pytest.mark.parametrize(
    ("language", "sentence", "tokens"),
    [
        ("de", 'Dr. Weiß sagt: "Nein, danke."', 'Dr. Weiß sagt : " Nein , danke . "'),
        ("en", "It isn't Ann's; it's 3.5% <b>", "It isn 't Ann 's ; it 's 3.5 % < b >"),
        ("fr", "L'ami d'Anne n'a qu'un vélo.", "L' ami d' Anne n' a qu' un vélo ."),
    ],
)
def test_tokens_and_the_way_back(language, sentence, tokens):
    moses = Moses(language, punctuation=False, lowercase=False)
    assert moses.tokenize(sentence) == tokens.split()
    if "<" not in sentence:
        assert moses.detokenize(tokens.split()) == sentence


@pytest.mark.parametrize(("language", "side"), [("de", 0), ("en", 1)])
def test_plain_sentences_come_back_as_they_were(language, side):
    moses = Moses(language, punctuation=False, lowercase=False)
    for pair in PAIRS:
        assert moses.detokenize(moses.tokenize(pair[side])) == pair[side]


def test_nothing_is_escaped_on_the_way_there_or_back():
    moses = Moses("en", punctuation=False, lowercase=False)
    assert moses.tokenize("a & b | [c]") == ["a", "&", "b", "|", "[", "c", "]"]
    assert moses.detokenize(["&", "amp", ";"]) == "& amp;"
    assert moses.detokenize(["&lt;"]) == "&lt;"


def test_lower_casing_and_punctuation_are_by_choice():
    sentence = "„Ja“ – ÖL…"
    assert Moses("de", False, False).tokenize(sentence) == ["„", "Ja", "“", "–", "ÖL", "…"]
    assert Moses("de", False, True).tokenize("ÖL") == ["öl"]
    assert Moses("de", True, True).tokenize(sentence) == ['"', "ja", '"', "-", "öl", "..."]


@pytest.mark.parametrize("punctuation", [False, True])
@pytest.mark.parametrize("character", TORTURE, ids=lambda c: f"U+{ord(c):04X}")
def test_odd_characters_separate_tokens(character, punctuation):
    moses = Moses("de", punctuation, lowercase=False)
    assert moses.tokenize(f"{character}eins{character}zwei{character}") == ["eins", "zwei"]
    assert moses.tokenize(character) == []


@pytest.mark.parametrize("punctuation", [False, True])
def test_any_number_of_workers_writes_the_same_bytes(tmp_path, monkeypatch, punctuation):
    monkeypatch.setattr(workers, "CHUNK", 3)
    before = TextFolder(tmp_path / "before", "de", "en")
    # Of chunks that differ in length, so that they finish out of order.
    pairs = [Pair(f"{a} " * (40 // (i + 1)), f"{b} {i}") for i, (a, b) in enumerate(PAIRS * 5)]
    write_set(before, "train", pairs)
    write_set(before, "valid", PAIRS)
    results = []
    for count in (1, 2, 5):
        out, ledger = tmp_path / f"out{count}", tmp_path / f"ledger{count}.json"
        tokenize_folder("c", Tokenize(punctuation, True), "NFC", before, out, ledger, count)
        files = sorted(out.iterdir())
        results.append([(file.name, file.read_bytes()) for file in files] + [ledger.read_bytes()])
        assert json.loads(ledger.read_text())["sets"]["train"]["pairs_out"] == len(pairs)
    assert results[0] == results[1] == results[2]
    after = list(TextFolder(tmp_path / "out2", "de", "en").pairs("train"))
    assert len(after) == len(pairs) and after[7].target.endswith(" 7")


def test_empty_sentences_stay(tmp_path):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "test.x", [("", "a."), ("\u2028", ""), ("b", "\x00")])
    tokenize_folder(
        "c", Tokenize(True, False), "NFC", before, tmp_path / "out", tmp_path / "ledger.json", 1
    )
    after = TextFolder(tmp_path / "out", "de", "en")
    assert list(after.pairs("test.x")) == [("", "a ."), ("", ""), ("b", "")]


@pytest.mark.parametrize(
    ("form", "source"), [("NFC", "ändert \ufb01n"), ("NFKC", "ändert fin"), ("none", None)]
)
def test_held_out_text_is_brought_to_the_form_of_train(tmp_path, form, source):
    before = TextFolder(tmp_path / "before", "de", "en")
    write_set(before, "test.x", [("a\u0308ndert \ufb01n", "x")])
    settings = Tokenize(punctuation=False, lowercase=False)
    tokenize_folder("c", settings, form, before, tmp_path / "out", tmp_path / "l.json", 1)
    ((found, _),) = TextFolder(tmp_path / "out", "de", "en").pairs("test.x")
    assert found == source if source else found != "ändert \ufb01n"
