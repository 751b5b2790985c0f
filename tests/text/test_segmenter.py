"""Japanese, Chinese and Thai are split into the words of segmenters, and joined to the sentence."""

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
# Letters of all three scripts, a vowel sign, and marks.
LETTERS = "ฉันก็ำ中国私カー aB1.'-▁\u200d"

# Creating a segmenter loads its dictionary.
segmenter_of = cache(Segmenter)


def segment_by_package(language, sentence):
    """Return the words of a sentence as the package's documentation calls it, without spaces."""
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
def test_words_are_those_of_the_package_of_the_language(language):
    """Between words, a space in the sentence is a token: the sign of a space."""
    for sentence in SENTENCES[language]:
        tokens = Segmenter(language).tokenize(sentence)
        words = [token for token in tokens if token != SPACE_SIGN]
        assert words == segment_by_package(language, sentence)
        assert len(tokens) > 4


def test_a_space_between_words_is_a_token():
    tokens = Segmenter("zho").tokenize(" 去 New York  的机票 ")

    assert tokens == ["去", SPACE_SIGN, "New", SPACE_SIGN, "York", SPACE_SIGN, "的", "机票"]


@pytest.mark.parametrize("language", SENTENCES)
@settings(max_examples=150, derandomize=True, database=None)
@given(sentence=st.text(max_size=20) | st.text(LETTERS + "".join(TORTURE), max_size=20))
def test_any_sentence_is_read_back_with_single_spaces(language, sentence):
    segmenter_of_language = segmenter_of(language)

    tokens = segmenter_of_language.tokenize(sentence)

    for token in tokens:
        assert token.split() == [token]
    words = replace_white_space(sentence).replace(SPACE_SIGN, " ").split()
    assert segmenter_of_language.detokenize(tokens) == " ".join(words)


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        pytest.param(
            [SPACE_SIGN, SPACE_SIGN, "a", SPACE_SIGN, SPACE_SIGN, "b", SPACE_SIGN],
            "a b",
            id="spaces at the ends and next to each other",
        ),
        pytest.param([SPACE_SIGN], "", id="one space"),
        pytest.param([], "", id="no tokens"),
    ],
)
def test_a_translation_has_single_spaces_between_words_wherever_the_model_writes_spaces(
    language, tokens, sentence
):
    assert segmenter_of(language).detokenize(tokens) == sentence


def test_a_language_without_segmenter_has_the_tokens_of_moses():
    """The other language of a Japanese corpus may be English, for example."""
    settings_of_corpus = Tokenize("segmenter", lowercase=True, hyphens=False, escape=False)

    tokenizer = tokenizer_for("en", settings_of_corpus)

    assert tokenizer.tokenize("It's late, Tom.") == ["it", "'s", "late", ",", "tom", "."]


def test_words_of_a_segmenter_are_lowercased_if_the_settings_say_so():
    settings_of_corpus = Tokenize("segmenter", lowercase=True, hyphens=False, escape=False)

    tokenizer = tokenizer_for("jpn", settings_of_corpus)

    assert tokenizer.tokenize("私はTomです") == ["私", "は", "tom", "です"]


@pytest.mark.parametrize(("language", "word"), [("ja", "猫"), ("zh", "猫"), ("th", "แมว")])
@pytest.mark.parametrize("template", ["{}", "a {} b", "{0}{0}", "x{}"])
def test_the_name_of_the_unknown_token_in_a_translation_stays_one_token(language, word, template):
    """BLEU counts tokens of translations, in which <unk> may stand next to any word."""
    sentence = word + template.format("<unk>") + word

    tokens = corpus_tokens([sentence], segmenter_of(language))[0].split(" ")

    assert tokens.count("<unk>") == sentence.count("<unk>")


def params_with_segmenter(source, target):
    """Return a params.yaml whose corpus has these languages and the tokenizer segmenter."""
    text = params.PARAMS.replace('source: "de"', f'source: "{source}"')
    text = text.replace('target: "no"', f'target: "{target}"')
    return text.replace("name: moses", "name: segmenter")


def test_the_tokenizer_segmenter_is_refused_if_neither_language_has_one(tmp_path):
    message = r"segmenter is for ja, zh and th, but this corpus has de and en. Use moses"
    with pytest.raises(UserError, match=message) as error:
        params.read(tmp_path, params_with_segmenter("de", "en"))

    assert "\n" not in str(error.value)
    assert "params.yaml:" in str(error.value)


@pytest.mark.parametrize("code", ["th", "tha"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch, code):
    """Thai needs pythainlp. It is noticed when the settings are read, and when text is split."""
    monkeypatch.setattr(segmenter, "find_spec", lambda _: None)  # No package is installed.

    message = (
        r"pythainlp is not installed\. Install it: pip install -c constraints.txt -e '\.\[th\]'"
    )
    with pytest.raises(UserError, match=message):
        params.read(tmp_path, params_with_segmenter(code, "en"))
    with pytest.raises(UserError, match=message):
        Segmenter(code)


def test_the_thai_segmenter_writes_nothing_to_the_home_folder(tmp_path):
    """By default, pythainlp creates a folder there."""
    program = (
        "from bleuprint.text.segmenter import Segmenter; print(Segmenter('th').tokenize('แมว'))"
    )
    environment = {**os.environ, "HOME": str(tmp_path)}

    process = processes.run([sys.executable, "-c", program], tmp_path, environment)

    assert process.stdout.decode() == "['แมว']\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("language", ["ja", "zh", "th"])
def test_settings_are_read_without_importing_a_segmenter(tmp_path, monkeypatch, language):
    """A command that reads the settings does not wait for the segmenter's dictionary."""
    # All packages count as installed, but their import would fail.
    monkeypatch.setattr(segmenter, "find_spec", lambda name: name)
    for package in ("fugashi", "rjieba", "pythainlp"):
        monkeypatch.setitem(sys.modules, package, None)

    settings_read = params.read(tmp_path, params_with_segmenter(language, "en"))

    assert settings_read.corpora["own"].source == language
