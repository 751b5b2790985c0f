from dataclasses import replace
from types import SimpleNamespace

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.rules import CHECKS
from bleuprint.rules.letters import SCRIPTS
from bleuprint.rules.rule import Candidate
from bleuprint.text.parallel import Pair
from bleuprint.text.tokenizers import Tokenize, token_bounds, tokenizer_for
from checks import SCORE, SETTINGS, keeps, keeps_side
from corpora import TORTURE


def never(_):
    raise AssertionError("tokenized")


def test_all_checks_are_tried_here():
    assert list(CHECKS) == list(SETTINGS)


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("Copyright 2010", "Copyright 2010", False),
        ("COPYRIGHT  2010.", "Copyright 2010", False),
        ("Ｏ\u212b", "oå", False),
        ("Copyright 2010", "Copyright 2011", True),
        ("mass", "maß", False),
        ("!", "!", False),
    ],
)
def test_identical(source, target, kept):
    assert keeps("identical", source, target) is kept


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("a b", "a b c d", True),
        ("a", "a b", False),
        ("a b", "a", False),
        ("a b", "a b c d e", False),
        ("a \u200b c d e", "a b", True),
    ],
)
def test_length_in_tokens(source, target, kept):
    tokenize = tokenizer_for("en", Tokenize("none", False, False, False)).tokenize
    assert keeps("length", source, target, tokenize=tokenize) is kept


def test_length_does_not_tokenize_what_has_too_many_words():
    huge = "word " * 2_000_000
    assert not keeps("length", huge, "a b", tokenize=never)
    assert not keeps("length", "a b", huge, tokenize=never)


WORDS = st.text(
    st.sampled_from(["a", "Z", "1", ".", ",", "'", "-", "&", " ", " ", "ü", "日", *TORTURE])
)


@given(WORDS, WORDS, st.sampled_from(["moses", "characters", "none"]), st.integers(1, 8))
def test_length_is_as_if_all_were_tokenized(source, target, by, most):
    tokenize = tokenizer_for("de", Tokenize(by, False, False, False)).tokenize
    plain = all(1 <= len(tokenize(side)) <= most for side in (source, target))
    assert keeps("length", source, target, tokenize=tokenize, min=1, max=most) == plain


@given(WORDS, WORDS, st.integers(1, 8), st.sampled_from([1.0, 1.5, 3.0]))
def test_bounds_of_lengths_change_no_decision(source, target, most, ratio):
    tokenize = tokenizer_for("de", Tokenize()).tokenize
    bounds = token_bounds(source, Tokenize()), token_bounds(target, Tokenize())
    for check in CHECKS["length"](max=most), CHECKS["length_ratio"](max=ratio):
        plain = Candidate(Pair(source, target), ("de", "de"), (tokenize, tokenize))
        assert check.keeps(replace(plain, bounds=bounds)) == check.keeps(plain)


def test_what_bounds_decide_is_not_tokenized():
    pair = Candidate(Pair("a b c", "a, b."), ("en", "de"), (never, never), bounds=((3, 7), (4, 6)))
    assert CHECKS["length"](max=7, min=3).keeps(pair)
    assert CHECKS["length_ratio"](max=2.4).keeps(pair)


@pytest.mark.parametrize(
    ("shorter", "longer", "kept"),
    [(2, 3, True), (20, 30, True), (20, 31, False), (1, 1, True), (1, 2, False), (0, 1, False)],
)
def test_ratio(shorter, longer, kept):
    sides = "w " * shorter, "w " * longer
    assert keeps("length_ratio", *sides) is kept
    assert keeps("length_ratio", *reversed(sides)) is kept


def test_ratio_at_a_bound_that_is_no_binary_fraction():
    assert keeps("length_ratio", "w " * 45, "w " * 63, max=1.4)  # 1.4 * 45 falls short of 63
    assert not keeps("length_ratio", "w " * 100, "w " * 111, max=1.1)


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("w1 w2 w3", "v3 v2 v1", True),
        ("w1 w2 w3", "v7 v8 v6", False),
        ("w1", "v1", True),
        ("", "v1", False),
    ],
)
def test_alignment_score(source, target, kept):
    assert keeps("word_alignment", source, target) is kept
    assert keeps("word_alignment", source, target, min=-3.0)
    assert not keeps("word_alignment", source, target, min=10.0)


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("w" * 10, True),
        ("w" * 11, False),
        (f"a {'w' * 11} b", False),
        ("\u00ad".join("w" * 10), True),
        ("\u200b".join("w" * 20), True),
    ],
)
def test_long_word(sentence, kept):
    assert keeps_side("long_word", sentence, "de") is kept


@pytest.mark.parametrize(
    ("length", "most", "kept"), [(12, 12, True), (13, 12, False), (30, 30, True)]
)
def test_a_long_word_is_as_long_as_the_setting_allows(length, most, kept):
    assert keeps_side("long_word", f"a {'w' * length}", "de", max=most) is kept


@pytest.mark.parametrize(
    ("sentence", "least", "kept"),
    [
        ("abc 1", 0.75, True),
        ("abc 12", 0.75, False),
        ("a 123", 0.25, True),
        ("a 1234", 0.25, False),
        ("1234", 0.0, True),
    ],
)
def test_the_share_of_letters_is_at_least_the_setting(sentence, least, kept):
    assert keeps_side("alphabet_ratio", sentence, "de", min=least) is kept


@pytest.mark.parametrize(
    ("sentence", "least", "kept"),
    [
        ("abc ж", 0.75, True),
        ("ab ж", 0.75, False),
        ("a жжж", 0.25, True),
        ("a жжжж", 0.25, False),
        ("жж", 0.0, True),
    ],
)
def test_the_share_of_the_languages_scripts_is_at_least_the_setting(sentence, least, kept):
    assert keeps_side("character_score", sentence, "de", min=least) is kept


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("ab 12", True),
        ("ab 123", False),
        ("ab   12", True),
        ("u\u0308 1 2", True),
        ("日本 123", False),
        ("हिन्दी 123456", True),
        ("हिन्दी 1234567", False),
        ("a\u00adb\u2060 12\ufeff", True),
        ("می\u200cخ 123", True),
    ],
)
def test_alphabetic(sentence, kept):
    assert keeps_side("alphabet_ratio", sentence, "de") is kept


@pytest.mark.parametrize(
    ("sentence", "language", "kept"),
    [
        ("Я не говорю по-немецки.", "ru", True),
        ("Übergrößenträger ÄÖÜ äöüß", "de", True),
        ("u\u0308bergro\u0308\u00dfe", "de", True),
        ("abcd ж", "de", True),
        ("abc ж", "de", False),
        ("12 – 34 !", "de", True),
        ("x ∈ ℝ, ℝ, ℝ, ℝ, ℝ", "de", True),
        ("5 µm ≈ 3 Ω", "de", False),
        ("これはテストです。スーパー々", "ja", True),
        ("ラーメン", "ru", False),
        ("ｶﾞ ガ か", "ja", True),
        ("这是一个测试。", "ja", True),
        ("これはテストです。", "zh", False),
        ("한국어 문장입니다.", "ko", True),
        ("Ovo je rečenica.", "sr", True),
        ("این جمله می\u200cخواهم", "fa", True),
        ("Αυτή είναι", "en", False),
    ],
)
def test_script(sentence, language, kept):
    assert keeps_side("character_score", sentence, language) is kept


def test_scripts_are_those_of_unicode_and_languages_those_of_the_identifier():
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    assert set(SCRIPTS) == set(identifier.labels) - {"zxx"}
    for script in {script for scripts in SCRIPTS.values() for script in scripts}:
        regex.compile(rf"\p{{scx={script}}}")


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("3 apples", "4 Äpfel", False),
        ("3 apples", "drei Äpfel", False),
        ("3 apples, 3 pears", "3 Äpfel und Birnen", False),
        ("1,000 or 1,000,000", "1.000 oder 1 000 000", True),
        ("1,000", "1000", True),
        ("1,000.000", "1000000", False),
        ("1,000", "1\u202f000", True),
        ("1,000", "1’000", True),
        ("1000.50", "1.000,50", True),
        ("3.5", "3.6", False),
        ("12/05/2010", "12.05.2010", True),
        ("in 2010 300 people", "300 Leute in 2010", True),
        ("12,3456", "12 3456", True),
        ("12,345", "12 3456", False),
        ("R2D2", "R22D", False),
        ("3 and 12", "３ と １２", True),
        ("1,000", "١٬٠٠٠", True),
        ("1,000,000", "1\u2060,\u2060000\u200f,000", True),
        ("100,000", "1,00,000", True),
        ("12,34,567 and 5", "1234567 und 5", True),
        ("10,000", "1,00,000", False),
        ("9:00", "09:00", True),
        ("at 9:05", "um 9.05 Uhr", True),
        ("at 9:05", "à 9h05", True),
        ("at 9:05", "um 9 Uhr 05", True),
        ("at 9:05", "um 9:50", False),
        ("at 9:00", "um 9 Uhr", True),
        ("9 pm", "21:00 Uhr", True),
        ("9:30 p.m.", "21 h 30", True),
        ("9 pm", "9 Uhr abends", True),
        ("12:30 am", "0:30", True),
        ("12 pm", "12 Uhr", True),
        ("9 am", "21 Uhr", False),
        ("9 pm", "20 Uhr", False),
        ("3/10/2020", "03.10.2020", True),
        ("10/3/2020", "2020-10-03", True),
        ("3. 10. 2020", "2020-10-03", True),
        ("3/10/2020", "03.11.2020", False),
        ("3/10/2020", "03.10.2021", False),
        ("on 10/3", "am 3.10.", True),
        ("5/3", "03.05.", True),
        ("3.05", "3.5", False),
        ("3.50", "3,5", True),
        ("2.0", "2", True),
        ("2:0", "2–0", True),
        ("0.123", "0,1230", True),
        ("0.5", ".5", True),
        ("½", "1/2", True),
        ("½", "0,5", True),
        ("1½", "1 1/2", True),
        ("1½", "1.5", True),
        ("¾", "0.7", False),
        ("½", "1/3", False),
        ("x²", "x2", True),
        ("10²", "102", False),
        ("H₂O", "H2O", True),
        ("x²", "x³", False),
        ("+49 30 123456", "+49 30 123 456", True),
        ("+49 30 123456", "0049 (30) 123-456", True),
        ("+49 30 123456", "+49 30 123457", False),
        ("030 123456", "030/123 456", True),
        ("1234 5678 9012 3456", "1234567890123456", True),
        ("+3.5 and 0.5", "3,5 und 0,5", True),
        ("1,2,3", "1, 2 und 3", True),
        ("5%", "5 %", True),
        ("the 1st", "der 1.", True),
        ("007", "7", True),
        ("１，０００", "1,000", True),
        ("١٢٫٥", "12.5", True),
        ("१२:०५", "12.05", True),
        ("٣/١٠/٢٠٢٠", "3.10.2020", True),
        ("192.168.1.10", "192.168.1.10", True),
        ("192.168.1.10", "192.168.1.11", False),
        ("2010 300", "300 in 2010", True),
        ("tel . ( 012 ) 304-5186", "tel . 012-304-5186", True),
        ("R2,3 billion", "R2 .3 billione", True),
        ("12:00 and 13:00", "12\u00a0h\u00a000 et 13\u00a0h\u00a000", True),
        ("the green door", "die grÃ¼ne Tür", True),
        ("3/10/20", "03.10.2020", True),
        ("3/10/98", "3. 10. 1998", True),
        ("3/10/20", "03.10.2021", False),
        ("at 9:05", "à 9 heures 05", True),
        ("at 12:30", "１２時３０分", True),
        ("9 a.m.", "a las 9 a. m.", True),
        ("(555) 123-4567", "555.123.4567", True),
        ("(555) 123-4567", "555.123.4568", False),
        ("+49.30.123456", "+49 30 123456", True),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000", True),
        ("in 1999 2000 2001", "1999, 2000, 2001", True),
        ("page 10 300 people", "300 Leute, Seite 10", True),
        ("1\u2007000\u2007000", "1,000,000", True),
        ("⒈ and ①", "1. und 1", True),
        ("\u00b2/\u2083 of 5", "⅔ von 5", True),
        (", ".join(["1.5"] * 12) + ", 3.10", ", ".join(["1,5"] * 12) + ", 10/3", True),
        (", ".join(["1.5"] * 12) + ", 3.10", ", ".join(["1,5"] * 12) + ", 10/4", False),
    ],
)
def test_numbers(source, target, kept):
    assert keeps("numerals", source, target) is kept
    assert keeps("numerals", target, source) is kept


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("One. Two.", "Eins, zwei.", False),
        ("One.", "Eins", False),
        ("One?", "Eins.", False),
        ("One?!", "Eins ?", True),
        ("One...", "Eins…", True),
        ('"One." Two?', "„Eins.“ Zwei?", True),
        ("3.5 example.org", "3,5 example,org", True),
        ("One. Two?", "一。二？", True),
        ("One. Two?", "واحد.\u200f اثنان?\u200f", True),
        ("One\u2060. Two", "Eins.\u00ad Zwei", True),
        ("....x", "x", True),
        ("One? Two.", "واحد؟ اثنان۔", True),
        ("A book.", "यह एक किताब है।", True),
        ("What? A book.", "यह एक किताब है। क्या।", False),
    ],
)
def test_terminal_punctuation(source, target, kept):
    assert keeps("terminal_punctuation", source, target) is kept
    assert keeps("terminal_punctuation", target, source) is kept


def test_a_greek_question_ends_in_a_semicolon():
    check = CHECKS["terminal_punctuation"]()
    for languages, kept in ((("en", "el"), True), (("en", "de"), False)):
        assert check.keeps(Candidate(Pair("How?", "Πώς;"), languages, (str.split, list))) is kept


SIDES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)


@given(SIDES, SIDES)
def test_checks_answer_for_any_two_sides(source, target):
    for name, given_settings in SETTINGS.items():
        candidate = Candidate(Pair(source, target), ("en", "ja"), (str.split, list), SCORE)
        assert CHECKS[name](**given_settings).keeps(candidate) in (True, False)


@given(SIDES, SIDES)
def test_a_check_answers_the_same_again(source, target):
    candidate = Candidate(Pair(source, target), ("en", "ja"), (str.split, list), SCORE)
    for name, given_settings in SETTINGS.items():
        check = CHECKS[name](**given_settings)
        first = check.keeps(candidate)
        assert isinstance(first, bool), name
        assert check.keeps(candidate) is first, name


@pytest.mark.parametrize(("score", "kept"), [(1.5, True), (1.4999, False), (1.5001, True)])
def test_a_pair_whose_score_is_the_least_one_is_kept(score, kept):
    check = CHECKS["word_alignment"](min=1.5)
    assert check.keeps(SimpleNamespace(alignment_score=score)) is kept


def test_no_pairs_have_no_languages():
    assert CHECKS["language_id"](min_odds=10.0).keeps_each([]) == []


def test_word_translations_are_learned_for_one_check():
    needing = [name for name, check in CHECKS.items() if check.needs_translations]
    assert needing == ["word_alignment"]
