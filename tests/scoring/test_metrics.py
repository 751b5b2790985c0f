"""Scores equal sacreBLEU's command line, run beside, and figures worked by hand."""

import numpy as np
import pytest

import result_trees as trees
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.bleu_variants import VARIANTS
from measuring import bleu, chrf, measure, ter, translated_set
from scoring import SEPARATORS, example_texts, sacrebleu


@pytest.fixture
def files(tmp_path):
    """Return a function that writes a test set and returns its references and translations."""

    def write_files(language):
        references, good, worse = example_texts(language)
        good[::7] = worse[::7]
        trees.write_lines(tmp_path / "references", references)
        trees.write_lines(tmp_path / "hypotheses", good)
        return references, good

    return write_files


@pytest.mark.parametrize("language", ["de", "zh"])
def test_bleu_chrf_and_ter_equal_those_of_sacrebleus_command_line(tmp_path, files, language):
    """SacreBLEU prints the mean of an interval and half its width.

    `files` writes the two files that sacreBLEU reads, and returns their lines.
    """
    references, translations = files(language)

    options = ("-l", f"en-{language}", "-m", "bleu", "chrf", "ter", "--confidence")
    results = sacrebleu(tmp_path / "references", *options, "-i", tmp_path / "hypotheses")

    entries = [
        bleu(translations, references, language),
        chrf(translations, references),
        ter(translations, references),
    ]
    for entry, result in zip(entries, results, strict=True):
        mean = result["confidence_mean"]
        half_width = result["confidence_var"]
        assert 0 < result["score"] < 100
        assert half_width > 0
        assert entry["value"] == result["score"]
        assert entry["signature"] == result["signature"]
        assert entry["ci_low"] == round(mean - half_width, 6)
        assert entry["ci_high"] == round(mean + half_width, 6)


@pytest.mark.parametrize("language", ["de", "zh"])
def test_chrf_with_word_order_equals_that_of_sacrebleus_command_line(tmp_path, files, language):
    """chrF++ also counts pairs of words, which sacreBLEU does with a word order of 2.

    `files` writes the two files that sacreBLEU reads, and returns their lines.
    """
    references, translations = files(language)

    options = ("-m", "chrf", "--chrf-word-order", "2", "--confidence")
    result = sacrebleu(tmp_path / "references", *options, "-i", tmp_path / "hypotheses")

    entry = measure("chrf2pp", translated_set(translations, references))
    assert entry["value"] == result["score"]
    assert entry["signature"] == result["signature"]
    assert "|nw:2|" in entry["signature"]
    assert entry["value"] != chrf(translations, references)["value"]


@pytest.mark.parametrize(("language", "tokenizer"), [("de", "13a"), ("zh", "zh")])
def test_the_length_ratio_is_the_one_that_sacrebleu_prints(tmp_path, files, language, tokenizer):
    """The length ratio: tokens of the translations by tokens of the references.

    `files` writes the two files that sacreBLEU reads, and returns their lines.
    """
    references, translations = files(language)

    options = ("-l", f"en-{language}", "-i", tmp_path / "hypotheses")
    result = sacrebleu(tmp_path / "references", *options)

    texts = translated_set(translations, references, language)
    ratio = measure("length_ratio", texts)["value"]
    assert f" ratio = {ratio:.3f} " in result["verbose_score"]
    assert f"tok:{tokenizer}|" in bleu(translations, references, language)["signature"]


LANGUAGES_BY_TOKENIZER = {
    "zh": ["zh", "zho", "cmn", "yue", "wuu", "nan", "hak", "gan", "hsn", "cdo", "lzh"],
    "char": ["bo", "bod", "dz", "dzo", "th", "lo", "km", "my"],
    "13a": ["de", "shn", "nod", "ii", "vi"],
}


@pytest.mark.parametrize("tokenizer", LANGUAGES_BY_TOKENIZER)
def test_bleu_has_the_tokenizer_of_the_target_language(tokenizer):
    for language in LANGUAGES_BY_TOKENIZER[tokenizer]:
        signature = bleu(["a b c d"], ["a b c d"], language)["signature"]
        assert f"|tok:{tokenizer}|" in signature, language


def test_ter_may_exceed_100():
    """TER counts the words to change, as a percentage of the words of the reference.

    Seven words have to be removed to get a reference of one word.
    """
    translation = "a b c d e f g h"
    reference = "a"

    entry = ter([translation] * 2, [reference] * 2)

    assert entry["value"] == 100 * 7 / 1
    assert entry["ci_low"] == 700
    assert entry["ci_high"] == 700


SIX_WORDS = [f"one two three four five {number}" for number in range(30)]


@pytest.mark.parametrize("metric", ["bleu", "chrf2"])
def test_the_interval_of_a_nearly_perfect_score_ends_at_100_at_most(metric):
    """Of 30 lines, all but the last are translated perfectly.

    An interval that is the mean plus or minus a half width could end above 100.
    """
    references = [f"one two three four five {number}" for number in range(30)]
    translations = [*references[:-1], "nothing of it"]

    entry = measure(metric, translated_set(translations, references, "en"))

    assert 0 < entry["ci_low"] < entry["value"] < entry["ci_high"] <= 100


def test_the_interval_of_a_score_near_0_begins_at_0():
    """Of 30 lines, the first is translated perfectly, and all others wrongly.

    An interval that is the mean plus or minus a half width could begin below 0.
    """
    references = [f"one two three four five {number}" for number in range(30)]
    translations = [references[0], *["x y"] * 29]

    entry = bleu(translations, references, "en")

    assert entry["ci_low"] == 0
    assert 0 < entry["value"] < entry["ci_high"]


def test_the_interval_of_a_score_of_0_has_no_width():
    entry = bleu(["x"] * 30, SIX_WORDS, "en")

    assert (entry["value"], entry["ci_low"], entry["ci_high"]) == (0, 0, 0)


@pytest.mark.parametrize("metric", ["bleu", *VARIANTS])
def test_sacrebleus_warning_of_tokenized_lines_is_not_logged(caplog, metric):
    """From 100 lines that end in a space and a period on, sacreBLEU warns that text is tokenized.

    It says that one should detokenize, but names no file, so it would not help.
    """
    tokenized_lines = ["a b c d ."] * 100

    entry = measure(metric, translated_set(tokenized_lines, tokenized_lines))

    assert entry["value"] == 100
    assert "detokenize" not in caplog.text


def test_scores_of_lines_with_unusual_characters_equal_those_of_sacrebleu_on_files(tmp_path):
    """Separators, control characters, emoji and combining accents stand in three lines each.

    A program that ended lines at other characters than newlines would compare the wrong lines.
    """
    characters = [*SEPARATORS, "\ufeff", "\u202e", "\x00", "😀\u200d", "\t", "ــ", "e\u0301"]
    references = []
    translations = []
    for number, character in enumerate(characters * 3):
        line = f"the {character} sentence {character}{number} is short {character}"
        references.append(line)
        is_wrong = number % 5 == 0
        translations.append(line.replace("short", "long") if is_wrong else line)
    trees.write_lines(tmp_path / "references", references)
    trees.write_lines(tmp_path / "hypotheses", translations)

    options = ("-m", "bleu", "chrf", "ter", "-i", tmp_path / "hypotheses")
    results = sacrebleu(tmp_path / "references", *options)

    entries = [
        bleu(translations, references, "en"),
        chrf(translations, references),
        ter(translations, references),
    ]
    values = [entry["value"] for entry in entries]
    assert values == [result["score"] for result in results]


@pytest.mark.parametrize(("language", "extra"), [("ja", "ja"), ("jpn", "ja"), ("ko", "ko")])
def test_a_tokenizer_that_is_missing_is_named_with_its_command(monkeypatch, language, extra):
    """Japanese and Korean need an extra of sacreBLEU, and the message says how to install it.

    With None in place of its class, a tokenizer counts as not installed.
    """
    for tokenizer_class in ("tokenizer_ja_mecab.MeCab", "tokenizer_ko_mecab.MeCab"):
        monkeypatch.setattr(f"sacrebleu.tokenizers.{tokenizer_class}", None)

    with pytest.raises(UserError, match=rf"pip install -c constraints.txt 'sacrebleu\[{extra}\]'"):
        bleu(["a"], ["a"], language)


@pytest.mark.parametrize(
    ("metric", "worst_value"),
    [("bleu", 0), ("chrf2", 0), ("chrf2pp", 0), ("length_ratio", 0), ("ter", 100)],
)
def test_empty_translations_have_the_worst_score(metric, worst_value):
    references = ["the cat sat", "on the mat", "all day"]
    texts = translated_set(["", "", ""], references)

    assert measure(metric, texts)["value"] == worst_value


def test_the_interval_of_ter_includes_resamples_without_a_reference():
    """Two lines, of which one has an empty reference and the other an empty translation.

    A resample draws two of the two lines. One with both lines has TER 200: two edits for a
    reference of one word. One with the same line twice has TER 100.
    """
    sacrebleu_seed = 12345
    resamples = np.random.default_rng(sacrebleu_seed).choice(2, size=(1000, 2))
    resamples_with_both = (resamples[:, 0] != resamples[:, 1]).sum()
    assert resamples_with_both == 480

    entry = ter(["a", ""], ["", "b"])

    assert entry["value"] == 200
    mean = (480 * 200 + 520 * 100) / 1000
    half_width = (200 - 100) / 2
    assert entry["ci_low"] == mean - half_width
    assert entry["ci_high"] == mean + half_width
