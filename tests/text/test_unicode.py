"""Invisible characters are removed or become spaces; sentences are compared by their letters."""

import unicodedata

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.text.unicode import (
    comparison_key,
    lowercase_text,
    normalize_unicode,
    replace_unprintable,
    replace_white_space,
)

ALL_CHARACTERS = [chr(code) for code in range(0x110000)]


def characters_with(unicode_property):
    """Return all characters with a property of Unicode, by the data of the package regex."""
    has_property = regex.compile(rf"\p{{{unicode_property}}}").match
    return set(filter(has_property, ALL_CHARACTERS))


# Invisible formats, by the rules for the limits of words in UAX #29. The vowel separator of
# Mongolian is one, but it belongs to the spelling.
FORMATS = characters_with("Word_Break=Format") - {"\u180e"}
# Signs that stand before a number, such as the Arabic sign of a verse; they are formats, too.
NUMBER_SIGNS = characters_with("Prepended_Concatenation_Mark")
FLAG_OF_ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize("function", [replace_unprintable, replace_white_space])
def test_invisible_formats_are_removed_from_words(function):
    """FORMATS are all characters that Unicode calls formats, such as the soft hyphen."""
    for character in FORMATS:
        # Python's version of Unicode may be older than that of `regex`, which FORMATS comes from.
        # Characters that Python does not know are kept.
        is_known = unicodedata.category(character) != "Cn"
        expected = "Wasser" if is_known else f"Was{character}ser"
        assert function(f"Was{character}ser") == expected


@pytest.mark.parametrize("function", [replace_unprintable, replace_white_space])
def test_control_characters_and_line_separators_become_spaces(function):
    """In Unicode, their categories are Cc, Zl and Zp. Other programs may end a line at them."""
    for character in ALL_CHARACTERS:
        is_separator = unicodedata.category(character) in ("Cc", "Zl", "Zp")
        if is_separator or character == "\u200b":  # The zero-width space.
            assert function(f"a{character}b") == "a b"


@pytest.mark.parametrize("function", [replace_unprintable, replace_white_space])
@pytest.mark.parametrize(
    "word",
    [
        pytest.param("می\u200cخواهم", id="Persian with zero-width non-joiner"),
        pytest.param("क्\u200dष", id="Hindi with zero-width joiner"),
        pytest.param("ᠬᠠᠷ\u180eᠠ", id="Mongolian with vowel separator"),
    ],
)
def test_invisible_characters_that_belong_to_the_spelling_are_kept(function, word):
    """Without them, a word would look wrong, or would be another word."""
    assert function(word) == word


def test_number_signs_include_those_of_arabic_syriac_and_kaithi():
    """Otherwise the set NUMBER_SIGNS, found by a property of Unicode, would miss some."""
    assert {"\u0600", "\u06dd", "\u070f", "\u08e2", "\U000110cd"} < NUMBER_SIGNS


@pytest.mark.parametrize("function", [replace_unprintable, replace_white_space])
@pytest.mark.parametrize(
    "text",
    [
        *sorted(NUMBER_SIGNS),
        pytest.param("آية\u06dd٥", id="Arabic verse with its number"),
        pytest.param(FLAG_OF_ENGLAND, id="flag"),
        pytest.param("👩\u200d👧\ufe0f", id="joined emoji"),
    ],
)
def test_number_signs_and_emoji_are_kept(function, text):
    """They contain formats, which are removed from other text."""
    assert function(text) == text


@pytest.mark.parametrize(
    ("language", "text", "lower"),
    [
        pytest.param(
            "tr", "İzmir ISPARTA IŞIK I\u0307Y\u0130", "izmir ısparta ışık iyi", id="Turkish"
        ),
        pytest.param("az", "QIRMIZI İLƏ", "qırmızı ilə", id="Azerbaijani"),
        pytest.param("aze", "I", "ı", id="Azerbaijani, three letters"),
        pytest.param("de", "ISPARTA", "isparta", id="German"),
        pytest.param("en", "\u0130zmir", "i\u0307zmir", id="English"),
    ],
)
def test_each_language_is_lowercased_by_its_own_rules(language, text, lower):
    """In Turkish and Azerbaijani, the lower case of İ is i, and that of I is ı."""
    assert lowercase_text(text, language) == lower


def test_replace_unprintable_keeps_no_break_spaces():
    assert replace_unprintable("5\u00a0%\t") == "5\u00a0% "


def test_replace_white_space_makes_each_white_space_a_space():
    assert replace_white_space("5\u00a0%\u2009\u3000\t") == "5 %   "


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            "Il dort\u00a0!", "Il dort !", id="no-break space"
        ),  # French has a no-break space before !.
        pytest.param("ein\u1680Mann", "ein Mann", id="Ogham space"),
        pytest.param("ein Mann", "Ein MANN.", id="capitals and full stop"),
        pytest.param("die Straße", "DIE STRASSE", id="ß as SS"),
        pytest.param("\ufb01n", "fin", id="ligature"),
        pytest.param("a\u0308ndern", "\u00e4ndern", id="composed letter"),
        pytest.param("„Ja“, sagte sie …", "ja sagte sie", id="quotation marks and ellipsis"),
        pytest.param("  a\u200b - b ", "a b", id="zero-width space and hyphen"),
        pytest.param("Zu\u00adkunft", "Zukunft", id="soft hyphen"),
        pytest.param("a\u2060\u0308ndern", "\u00e4ndern", id="word joiner inside a letter"),
        pytest.param("\ufeffOui\u200f!", "oui", id="byte order mark"),
        pytest.param("١٢\u06dd", "١٢", id="Arabic number sign"),
        pytest.param(f"Go {FLAG_OF_ENGLAND}!", "go", id="flag"),
        pytest.param("3€", "3 €", id="currency sign"),
        pytest.param("geht\u00b4s so dass", "geht's sodass", id="acute accent as apostrophe"),
        pytest.param(
            "\u210caus", "haus", id="script capital"
        ),  # NFKC makes it the capital H, which is then lowercased.
        pytest.param("a + b", "a+b", id="plus sign"),
        pytest.param("!…", "!...", id="ellipsis as three points"),
        pytest.param("?\u200b!", "? !", id="zero-width space between marks"),
        pytest.param(" ?  !", "? !", id="spaces between marks"),
    ],
)
def test_sentences_that_differ_in_case_punctuation_or_encoding_compare_equal(first, second):
    """Test sentences that occur in the training text in such a form must be found, too."""
    assert comparison_key(first) == comparison_key(second)
    assert comparison_key(first) != ""


@pytest.mark.parametrize(
    ("first", "second"), [("कि", "का"), ("!", "?"), ("a b", "a c"), ("1+1", "1+2")]
)
def test_sentences_of_different_words_compare_different(first, second):
    """The first pair are Hindi syllables that differ in a vowel sign, which is a mark."""
    assert comparison_key(first) != comparison_key(second)


def without_signs(text):
    """Return a text without formats, in which signs, punctuation and controls are spaces."""
    characters = []
    for character in text:
        category = unicodedata.category(character)
        is_joiner = character in "\u200c\u200d\u180e"
        if category[0] in "ZPS" or category == "Cc" or character == "\u200b":
            characters.append(" ")
        elif category != "Cf" or is_joiner:
            characters.append(character)
    return "".join(characters)


def comparison_key_of_whole_text(text):
    """Return what `comparison_key` returns, by its definition, without dividing text into words."""
    folded = unicodedata.normalize("NFKC", without_signs(text)).casefold()
    return without_signs(unicodedata.normalize("NFKC", folded)).replace(" ", "")


# Letters, marks and signs whose forms depend on their neighbors.
DEPENDENT_CHARACTERS = st.sampled_from("aAßfi ﬁéΣς\u00ad\u0301\u0327\u1100\u1161\u00b4\u200d.かﾞ§ ")


@given(text=st.text(DEPENDENT_CHARACTERS, max_size=20) | st.text(max_size=20))
@settings(max_examples=500, derandomize=True)
def test_the_comparison_key_of_a_text_is_that_of_its_words(text):
    """The key is computed word by word, since words repeat."""
    assert comparison_key(f"x {text}") == comparison_key_of_whole_text(f"x {text}")


LETTERS_AND_COMBINING_MARKS = (
    "aäộ\u0323\u0301\u0344\u0327\u0f71\u0f72\u3099각\ufb01\u034f\u0903<\u0338"
)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(text=st.text(LETTERS_AND_COMBINING_MARKS, max_size=40))
@settings(max_examples=200, derandomize=True)
def test_a_long_text_is_normalized_as_by_python(form, text):
    """Long texts are divided, since Python takes quadratic time for a row of combining marks."""
    for long_text in ("x" * 2000 + text, text * 200):
        normalized = normalize_unicode(form, long_text)
        assert normalized == unicodedata.normalize(form, long_text)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_combining_marks_of_a_letter_in_a_long_text_are_not_divided(form):
    # "<" with a dot below and a slash. NFC puts the slash first and composes it with "<": \u226e.
    letter = "<\u0323\u0338"

    normalized = normalize_unicode(form, f"{letter}a" * 1000)

    assert normalized == "\u226e\u0323a" * 1000
