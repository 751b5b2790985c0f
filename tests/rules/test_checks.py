"""Filtering rules that check pairs: which pairs each of them keeps and drops."""

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


def fail_if_tokenized(_sentence):
    """Stand in for a tokenizer where a check must decide without one."""
    raise AssertionError("tokenized")


def test_the_settings_for_tests_name_all_checks_in_their_order():
    """The tests of all checks at once use SETTINGS of tests/support/checks.py."""
    assert list(SETTINGS) == list(CHECKS)


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        pytest.param("Copyright 2010", "Copyright 2010", False, id="equal"),
        pytest.param("COPYRIGHT  2010.", "Copyright 2010", False, id="case, spaces and a period"),
        pytest.param("Ｏ\u212b", "oå", False, id="wide letter and the sign of the angstrom"),
        pytest.param("Copyright 2010", "Copyright 2011", True, id="another number"),
        pytest.param("mass", "maß", False, id="ß, which is ss in capitals"),
        pytest.param("!", "!", False, id="equal without letters"),
    ],
)
def test_the_check_identical_drops_copies_whatever_their_case_and_spaces(source, target, is_kept):
    assert keeps("identical", source, target) is is_kept


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        pytest.param("a b", "a b c d", True, id="2 and 4 tokens"),
        pytest.param("a", "a b", False, id="source of 1 token"),
        pytest.param("a b", "a", False, id="target of 1 token"),
        pytest.param("a b", "a b c d e", False, id="target of 5 tokens"),
        pytest.param("a \u200b c d e", "a b", True, id="source of 4 tokens and an invisible one"),
    ],
)
def test_the_check_length_keeps_sides_of_2_to_4_tokens(source, target, is_kept):
    tokenize = tokenizer_for("en", Tokenize("none", False, False, False)).tokenize

    assert keeps("length", source, target, tokenize=tokenize, min=2, max=4) is is_kept


def test_a_side_with_too_many_words_is_dropped_before_it_is_tokenized():
    """The check splits at spaces first, since a tokenizer takes long for two million words.

    Here the tokenizer fails if it is called.
    """
    huge_side = "word " * 2_000_000

    assert not keeps("length", huge_side, "a b", tokenize=fail_if_tokenized, min=2, max=4)
    assert not keeps("length", "a b", huge_side, tokenize=fail_if_tokenized, min=2, max=4)


WORDS = st.text(
    st.sampled_from(["a", "Z", "1", ".", ",", "'", "-", "&", " ", " ", "ü", "日", *TORTURE])
)


@given(WORDS, WORDS, st.sampled_from(["moses", "characters", "none"]), st.integers(1, 8))
def test_length_decides_as_if_all_sides_were_tokenized(source, target, tokenizer, max_tokens):
    """The check skips the tokenizer where the number of characters or words decides."""
    tokenize = tokenizer_for("de", Tokenize(tokenizer, False, False, False)).tokenize
    has_allowed_lengths = all(1 <= len(tokenize(side)) <= max_tokens for side in (source, target))

    is_kept = keeps("length", source, target, tokenize=tokenize, min=1, max=max_tokens)

    assert is_kept == has_allowed_lengths


@given(WORDS, WORDS, st.integers(1, 8), st.sampled_from([1.0, 1.5, 3.0]))
def test_bounds_of_token_counts_change_no_decision(source, target, max_tokens, max_ratio):
    """Bounds save the tokenizer's time; a pair with bounds must be judged like one without."""
    tokenize = tokenizer_for("de", Tokenize()).tokenize
    candidate = Candidate(Pair(source, target), ("de", "de"), (tokenize, tokenize))
    bounds = (token_bounds(source, Tokenize()), token_bounds(target, Tokenize()))
    candidate_with_bounds = replace(candidate, bounds=bounds)

    length = CHECKS["length"](max=max_tokens)
    assert length.keeps(candidate_with_bounds) == length.keeps(candidate)
    length_ratio = CHECKS["length_ratio"](max=max_ratio)
    assert length_ratio.keeps(candidate_with_bounds) == length_ratio.keeps(candidate)


def test_pairs_that_the_bounds_of_token_counts_decide_are_not_tokenized():
    """The bounds say that the source has 3 to 7 tokens and the target 4 to 6.

    The tokenizer, which is slow, fails here if it is called.
    """
    source_bounds = (3, 7)  # from 3 to 7 tokens
    target_bounds = (4, 6)
    candidate = Candidate(
        Pair("a b c", "a, b."),
        ("en", "de"),
        (fail_if_tokenized, fail_if_tokenized),
        bounds=(source_bounds, target_bounds),
    )

    assert CHECKS["length"](min=3, max=7).keeps(candidate)
    # The ratio is at most 7 / 4 = 1.75 or 6 / 3 = 2.
    assert CHECKS["length_ratio"](max=2.4).keeps(candidate)


@pytest.mark.parametrize(
    ("shorter", "longer", "is_kept"),
    [
        pytest.param(2, 3, True, id="2 and 3 words: ratio 1.5"),
        pytest.param(20, 30, True, id="20 and 30 words: ratio 1.5"),
        pytest.param(20, 31, False, id="20 and 31 words: ratio 1.55"),
        pytest.param(1, 1, True, id="equal lengths"),
        pytest.param(1, 2, False, id="1 and 2 words: ratio 2"),
        pytest.param(0, 1, False, id="empty side"),
    ],
)
def test_the_longer_side_has_at_most_1_5_times_the_tokens_of_the_shorter(shorter, longer, is_kept):
    """`shorter` and `longer` are numbers of words; each pair is tried in both directions."""
    shorter_side = "w " * shorter
    longer_side = "w " * longer

    assert keeps("length_ratio", shorter_side, longer_side, max=1.5) is is_kept
    assert keeps("length_ratio", longer_side, shorter_side, max=1.5) is is_kept


def test_a_ratio_of_exactly_the_maximum_is_kept_despite_rounding():
    """The product 1.4 * 45 is 63, but 62.99999999999999 in floating point."""
    assert keeps("length_ratio", "w " * 45, "w " * 63, max=1.4)


def test_a_ratio_slightly_above_the_maximum_is_dropped():
    assert not keeps("length_ratio", "w " * 100, "w " * 111, max=1.1)


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        pytest.param("w1 w2 w3", "v3 v2 v1", True, id="all words translated, in another order"),
        pytest.param("w1 w2 w3", "v7 v8 v6", False, id="unrelated words"),
        pytest.param("w1", "v1", True, id="one translated word"),
        pytest.param("", "v1", False, id="empty source"),
    ],
)
def test_word_alignment_keeps_pairs_whose_words_translate_each_other(source, target, is_kept):
    """The translation table knows that w1 is v1, w2 is v2 and so on."""
    assert keeps("word_alignment", source, target, min=0.5) is is_kept


@pytest.mark.parametrize(
    ("source", "target"),
    [("w1 w2 w3", "v3 v2 v1"), ("w1 w2 w3", "v7 v8 v6"), ("w1", "v1"), ("", "v1")],
)
def test_word_alignment_keeps_all_pairs_at_its_lowest_minimum_and_none_at_its_highest(
    source, target
):
    assert keeps("word_alignment", source, target, min=-3.0)
    assert not keeps("word_alignment", source, target, min=10.0)


@pytest.mark.parametrize(
    ("sentence", "is_kept"),
    [
        pytest.param("w" * 10, True, id="10 letters"),
        pytest.param("w" * 11, False, id="11 letters"),
        pytest.param(f"a {'w' * 11} b", False, id="11 letters between short words"),
        pytest.param("\u00ad".join("w" * 10), True, id="10 letters with soft hyphens"),
        pytest.param("\u200b".join("w" * 20), True, id="20 words of one letter"),
    ],
)
def test_a_word_of_more_than_10_visible_characters_is_dropped(sentence, is_kept):
    """The character U+200B is a space of no width, so it divides words."""
    assert keeps_side("long_word", sentence, "de", max=10) is is_kept


@pytest.mark.parametrize(
    ("length", "max_length", "is_kept"),
    [
        pytest.param(12, 12, True, id="12 letters at most 12"),
        pytest.param(13, 12, False, id="13 letters at most 12"),
        pytest.param(30, 30, True, id="30 letters at most 30"),
    ],
)
def test_a_long_word_is_as_long_as_the_setting_allows(length, max_length, is_kept):
    assert keeps_side("long_word", f"a {'w' * length}", "de", max=max_length) is is_kept


@pytest.mark.parametrize(
    ("sentence", "min_share", "is_kept"),
    [
        pytest.param("abc 1", 0.75, True, id="3 letters of 4 characters"),
        pytest.param("abc 12", 0.75, False, id="3 letters of 5 characters"),
        pytest.param("a 123", 0.25, True, id="1 letter of 4 characters"),
        pytest.param("a 1234", 0.25, False, id="1 letter of 5 characters"),
        pytest.param("1234", 0.0, True, id="no letter, minimum 0"),
    ],
)
def test_the_share_of_letters_is_at_least_the_setting(sentence, min_share, is_kept):
    assert keeps_side("alphabet_ratio", sentence, "de", min=min_share) is is_kept


@pytest.mark.parametrize(
    ("sentence", "min_share", "is_kept"),
    [
        pytest.param("abc ж", 0.75, True, id="3 Latin letters of 4"),
        pytest.param("ab ж", 0.75, False, id="2 Latin letters of 3"),
        pytest.param("a жжж", 0.25, True, id="1 Latin letter of 4"),
        pytest.param("a жжжж", 0.25, False, id="1 Latin letter of 5"),
        pytest.param("жж", 0.0, True, id="no Latin letter, minimum 0"),
    ],
)
def test_the_share_of_the_languages_scripts_is_at_least_the_setting(sentence, min_share, is_kept):
    assert keeps_side("character_score", sentence, "de", min=min_share) is is_kept


@pytest.mark.parametrize(
    ("sentence", "is_kept"),
    [
        pytest.param("ab 12", True, id="2 letters of 4 characters"),
        pytest.param("ab 123", False, id="2 letters of 5 characters"),
        pytest.param("ab   12", True, id="spaces do not count"),
        pytest.param("u\u0308 1 2", True, id="a combining mark counts as a letter"),
        pytest.param("日本 123", False, id="2 Japanese characters of 5"),
        pytest.param("हिन्दी 123456", True, id="6 Hindi letters and marks of 12"),
        pytest.param("हिन्दी 1234567", False, id="6 Hindi letters and marks of 13"),
        pytest.param("a\u00adb\u2060 12\ufeff", True, id="invisible characters do not count"),
        pytest.param("می\u200cخ 123", True, id="3 Persian letters of 6 characters"),
    ],
)
def test_at_least_half_of_the_characters_must_be_letters(sentence, is_kept):
    assert keeps_side("alphabet_ratio", sentence, "de", min=0.5) is is_kept


@pytest.mark.parametrize(
    ("sentence", "language", "is_kept"),
    [
        pytest.param("Я не говорю по-немецки.", "ru", True, id="Russian"),
        pytest.param("Übergrößenträger ÄÖÜ äöüß", "de", True, id="German"),
        pytest.param("u\u0308bergro\u0308\u00dfe", "de", True, id="German with combining marks"),
        pytest.param("abcd ж", "de", True, id="4 Latin letters of 5"),
        pytest.param("abc ж", "de", False, id="3 Latin letters of 4"),
        pytest.param("12 – 34 !", "de", True, id="no letters"),
        pytest.param("x ∈ ℝ, ℝ, ℝ, ℝ, ℝ", "de", True, id="mathematical letters in German"),
        pytest.param("5 µm ≈ 3 Ω", "de", False, id="units in Greek letters"),
        pytest.param("これはテストです。スーパー々", "ja", True, id="Japanese"),
        pytest.param("ラーメン", "ru", False, id="Japanese as Russian"),
        pytest.param("ｶﾞ ガ か", "ja", True, id="Japanese in halfwidth and fullwidth forms"),
        pytest.param("这是一个测试。", "ja", True, id="Chinese characters only, as Japanese"),
        pytest.param("これはテストです。", "zh", False, id="Japanese as Chinese"),
        pytest.param("한국어 문장입니다.", "ko", True, id="Korean"),
        pytest.param("Ovo je rečenica.", "sr", True, id="Serbian in Latin letters"),
        pytest.param("این جمله می\u200cخواهم", "fa", True, id="Persian"),
        pytest.param("Αυτή είναι", "en", False, id="Greek as English"),
    ],
)
def test_80_percent_of_the_letters_must_belong_to_the_scripts_of_the_language(
    sentence, language, is_kept
):
    assert keeps_side("character_score", sentence, language, min=0.8) is is_kept


def test_scripts_are_known_for_each_language_that_can_be_identified():
    """SCRIPTS names the scripts of a language, such as Latin.

    py3langid identifies languages; its label `zxx` means text without a language.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)

    assert set(SCRIPTS) == set(identifier.labels) - {"zxx"}


@pytest.mark.parametrize("language", SCRIPTS)
def test_the_scripts_of_a_language_have_names_of_unicode(language):
    for script in SCRIPTS[language]:
        regex.compile(rf"\p{{scx={script}}}")  # Unknown names raise an error.


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
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
        pytest.param(
            ", ".join(["1.5"] * 12) + ", 3.10",
            ", ".join(["1,5"] * 12) + ", 10/3",
            True,
            id="twelve decimals and a decimal that is a date",
        ),
        pytest.param(
            ", ".join(["1.5"] * 12) + ", 3.10",
            ", ".join(["1,5"] * 12) + ", 10/4",
            False,
            id="twelve decimals and another date",
        ),
    ],
)
def test_both_sides_must_contain_the_same_numbers(source, target, is_kept):
    assert keeps("numerals", source, target) is is_kept
    assert keeps("numerals", target, source) is is_kept


@pytest.mark.parametrize(
    ("source", "target", "is_kept"),
    [
        pytest.param("One. Two.", "Eins, zwei.", False, id="one end fewer"),
        pytest.param("One.", "Eins", False, id="end missing"),
        pytest.param("One?", "Eins.", False, id="question and statement"),
        pytest.param("One?!", "Eins ?", True, id="several marks as one"),
        pytest.param("One...", "Eins…", True, id="ellipsis"),
        pytest.param('"One." Two?', "„Eins.“ Zwei?", True, id="inside quotation marks"),
        pytest.param("3.5 example.org", "3,5 example,org", True, id="inside numbers and addresses"),
        pytest.param("One. Two?", "一。二？", True, id="Chinese"),
        pytest.param("One. Two?", "واحد.\u200f اثنان?\u200f", True, id="Arabic question mark"),
        pytest.param("One\u2060. Two", "Eins.\u00ad Zwei", True, id="invisible characters"),
        pytest.param("....x", "x", True, id="no end before a letter"),
        pytest.param("One? Two.", "واحد؟ اثنان۔", True, id="Urdu full stop"),
        pytest.param("A book.", "यह एक किताब है।", True, id="Hindi danda"),
        pytest.param("What? A book.", "यह एक किताब है। क्या।", False, id="danda for a question"),
    ],
)
def test_both_sides_must_end_as_many_sentences_in_the_same_way(source, target, is_kept):
    assert keeps("terminal_punctuation", source, target) is is_kept
    assert keeps("terminal_punctuation", target, source) is is_kept


@pytest.mark.parametrize(("target_language", "is_kept"), [("el", True), ("de", False)])
def test_a_semicolon_counts_as_a_question_mark_only_in_greek(target_language, is_kept):
    """The rule drops a pair if one side ends more questions than the other."""
    check = CHECKS["terminal_punctuation"]()
    pair = Pair("How?", "Πώς;")

    candidate = Candidate(pair, ("en", target_language), (str.split, list))

    assert check.keeps(candidate) is is_kept


SIDES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)


@given(SIDES, SIDES)
def test_each_check_answers_true_or_false_for_any_two_sides(source, target):
    """SETTINGS has the settings of each check by its name, and SCORE rates a word alignment."""
    candidate = Candidate(Pair(source, target), ("en", "ja"), (str.split, list), SCORE)
    for name, settings in SETTINGS.items():
        assert CHECKS[name](**settings).keeps(candidate) in (True, False)


@given(SIDES, SIDES)
def test_a_check_gives_the_same_answer_twice(source, target):
    """A result must not depend on how often, or in what order, pairs are checked.

    SETTINGS has the settings of each check by its name; SCORE rates a word alignment.
    """
    candidate = Candidate(Pair(source, target), ("en", "ja"), (str.split, list), SCORE)
    for name, settings in SETTINGS.items():
        check = CHECKS[name](**settings)
        first_answer = check.keeps(candidate)
        assert isinstance(first_answer, bool), name
        assert check.keeps(candidate) is first_answer, name


@pytest.mark.parametrize(("score", "is_kept"), [(1.5, True), (1.4999, False), (1.5001, True)])
def test_word_alignment_keeps_a_pair_whose_score_is_exactly_the_minimum(score, is_kept):
    check = CHECKS["word_alignment"](min=1.5)

    assert check.keeps(SimpleNamespace(alignment_score=score)) is is_kept


def test_language_id_accepts_an_empty_batch():
    assert CHECKS["language_id"](min_odds=10.0).keeps_each([]) == []


def test_only_word_alignment_needs_a_translation_table():
    checks = [name for name, check in CHECKS.items() if check.needs_translations]

    assert checks == ["word_alignment"]
