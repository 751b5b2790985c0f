"""Words are those of the segmenters themselves; joined again, they are the sentence."""

import os
import sys
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import params
import processes
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.bleu_variants import corpus_tokens
from bleuprint.text import segmenter
from bleuprint.text.segmenter import SPACE_SIGN, Segmenter
from bleuprint.text.tokenizers import Tokenize, tokenizer_for
from bleuprint.text.unicode import replace_white_space
from corpora import TORTURE

SENTENCES = {
    "ja": [
        "私は2026年にNew Yorkへ行きました。",
        "iPhone15とPython 3.14を使っています、とても便利です！",
        "「今日は天気がいいですね」と彼女は言った。",
        "駅前の図書館は 月曜日 が休みです。",
        "ＡＢＣ１２３　全角の文字",
    ],
    "zh": [
        "我来到北京清华大学，他在网易工作。",
        "我在2026年买了iPhone 15和去New York的机票。",
        "Python 3.14 很好用。",
        "小猫睡在炉子上，明天要下雨。",
    ],
    "th": [
        "ฉันไปโรงเรียนทุกวัน แต่วันนี้ฉันป่วย",
        "ผมซื้อ iPhone 15 ที่กรุงเทพฯ เมื่อปี 2026 ในราคา 3.5 หมื่น",
        "สวัสดีครับ คุณสบายดีไหม?",
        "แมวนอนหลับ อยู่บน เตาไฟ",
    ],
}
LETTERS = "ฉันก็ำ中国私カー aB1.'-▁\u200d"

segmenter_of = cache(Segmenter)


def reference(language, sentence):
    """The words of the tool as its documentation calls it; spaces are no words."""
    words: list[str]
    if language == "ja":
        import fugashi
        import unidic_lite

        folder = unidic_lite.DICDIR
        tagger = fugashi.Tagger(f'-r "{folder}/mecabrc" -d "{folder}"')
        words = [word.surface for word in tagger(sentence)]
    elif language == "zh":
        import rjieba

        words = rjieba.cut(sentence)
    else:
        from pythainlp import word_tokenize

        words = word_tokenize(sentence)
    return [word for word in words if word.strip()]


@pytest.mark.parametrize("language", SENTENCES)
def test_words_are_those_of_the_tool(language):
    for sentence in SENTENCES[language]:
        found = Segmenter(language).tokenize(sentence)
        assert [token for token in found if token != SPACE_SIGN] == reference(language, sentence)
        assert len(found) > 4


def test_a_space_is_a_token():
    found = Segmenter("zho").tokenize(" 去 New York  的机票 ")
    assert found == ["去", SPACE_SIGN, "New", SPACE_SIGN, "York", SPACE_SIGN, "的", "机票"]


@pytest.mark.parametrize("language", SENTENCES)
@settings(max_examples=150, derandomize=True, database=None)
@given(st.text(max_size=20) | st.text(LETTERS + "".join(TORTURE), max_size=20))
def test_any_line_comes_back_but_for_its_spaces(language, sentence):
    tool = segmenter_of(language)
    tokens = tool.tokenize(sentence)
    assert all(token.split() == [token] for token in tokens)
    expected = " ".join(replace_white_space(sentence).replace(SPACE_SIGN, " ").split())
    assert tool.detokenize(tokens) == expected


@pytest.mark.parametrize("language", SENTENCES)
def test_spaces_that_a_model_writes_in_odd_places_are_single_and_inside(language):
    """A sentence has none at its ends or side by side; a translation may."""
    tool = segmenter_of(language)
    assert (
        tool.detokenize([SPACE_SIGN, SPACE_SIGN, "a", SPACE_SIGN, SPACE_SIGN, "b", SPACE_SIGN])
        == "a b"
    )
    assert tool.detokenize([SPACE_SIGN]) == ""
    assert tool.detokenize([]) == ""


def test_the_other_language_has_tokens_of_moses():
    chosen = Tokenize("segmenter", lowercase=True, hyphens=False, escape=False)
    found = tokenizer_for("en", chosen).tokenize("It's late, Tom.")
    assert found == ["it", "'s", "late", ",", "tom", "."]
    assert tokenizer_for("jpn", chosen).tokenize("私はTomです") == ["私", "は", "tom", "です"]


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("around", ["{}", "a {} b", "{0}{0}", "x{}"])
def test_an_unknown_token_stays_one_token(language, around):
    word = {"ja": "猫", "zh": "猫", "th": "แมว"}[language]
    sentence = word + around.format("<unk>") + word
    tokens = corpus_tokens([sentence], segmenter_of(language))[0].split(" ")
    assert tokens.count("<unk>") == sentence.count("<unk>")


def corpus_of(source, target):
    text = params.PARAMS.replace('source: "de"', f'source: "{source}"')
    text = text.replace('target: "no"', f'target: "{target}"')
    return text.replace("name: moses", "name: segmenter")


def test_a_pair_without_such_a_language_is_refused(tmp_path):
    message = r"segmenter is for ja, zh and th, and this corpus has de and en: use moses"
    with pytest.raises(UserError, match=message) as error:
        params.read(tmp_path, corpus_of("de", "en"))
    assert "\n" not in str(error.value) and "params.yaml:" in str(error.value)


@pytest.mark.parametrize("code", ["th", "tha"])
def test_a_segmenter_that_is_not_installed_is_named(tmp_path, monkeypatch, code):
    monkeypatch.setattr(segmenter, "find_spec", lambda _: None)
    command = (
        r"pythainlp is not installed\. Install it: pip install -c constraints.txt -e '\.\[th\]'"
    )
    with pytest.raises(UserError, match=command):
        params.read(tmp_path, corpus_of(code, "en"))
    with pytest.raises(UserError, match=command):
        Segmenter(code)


def test_nothing_is_written_into_the_home(tmp_path):
    code = "from bleuprint.text.segmenter import Segmenter; print(Segmenter('th').tokenize('แมว'))"
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = processes.run([sys.executable, "-c", code], tmp_path, environment)
    assert done.stdout.decode() == "['แมว']\n" and not list(tmp_path.iterdir())


def test_settings_are_read_without_importing_a_segmenter(tmp_path, monkeypatch):
    """A command that reads the settings does not wait for the segmenter's dictionary."""
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)  # installed or not
    for package in ("fugashi", "rjieba", "pythainlp"):
        monkeypatch.setitem(sys.modules, package, None)  # an import would fail
    for language in ("ja", "zh", "th"):
        assert params.read(tmp_path, corpus_of(language, "en")).corpora["own"].source == language
