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

# The formats of UAX #29 by the data of another library, but for that of Mongolian spelling.
ALL = [chr(code) for code in range(0x110000)]
FORMATS = set(filter(regex.compile(r"\p{Word_Break=Format}").match, ALL)) - {"\u180e"}
SIGNS = set(filter(regex.compile(r"\p{Prepended_Concatenation_Mark}").match, ALL))
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


def test_formats_are_removed_and_controls_separate():
    for character in FORMATS:
        removed = unicodedata.category(character) != "Cn"  # not of this Python's Unicode
        for blank in (replace_unprintable, replace_white_space):
            assert blank(f"Was{character}ser") == ("Wasser" if removed else f"Was{character}ser")
    for character in ALL:
        if unicodedata.category(character) in ("Cc", "Zl", "Zp") or character == "\u200b":
            assert (
                replace_unprintable(f"a{character}b")
                == replace_white_space(f"a{character}b")
                == "a b"
            )


def test_joiners_belong_to_the_spelling():
    for word in ("می\u200cخواهم", "क्\u200dष", "ᠬᠠᠷ\u180eᠠ"):
        assert replace_unprintable(word) == replace_white_space(word) == word


def test_signs_and_emoji_stay():
    assert {"\u0600", "\u06dd", "\u070f", "\u08e2", "\U000110cd"} < SIGNS
    for text in (*SIGNS, "آية\u06dd٥", ENGLAND, "👩\u200d👧\ufe0f"):
        assert replace_unprintable(text) == replace_white_space(text) == text


@pytest.mark.parametrize(
    ("language", "text", "lower"),
    [
        ("tr", "İzmir ISPARTA IŞIK I\u0307Y\u0130", "izmir ısparta ışık iyi"),
        ("az", "QIRMIZI İLƏ", "qırmızı ilə"),
        ("aze", "I", "ı"),
        ("de", "ISPARTA", "isparta"),
        ("en", "\u0130zmir", "i\u0307zmir"),
    ],
)
def test_lower_case_of_a_language(language, text, lower):
    assert lowercase_text(text, language) == lower


def test_white_space_of_every_kind():
    assert replace_unprintable("5\u00a0%\t") == "5\u00a0% "
    assert replace_white_space("5\u00a0%\u2009\u3000\t") == "5 %   "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Il dort\u00a0!", "Il dort !"),  # French writes a no-break space here
        ("ein\u1680Mann", "ein Mann"),
        ("ein Mann", "Ein MANN."),
        ("die Straße", "DIE STRASSE"),
        ("\ufb01n", "fin"),
        ("a\u0308ndern", "\u00e4ndern"),
        ("„Ja“, sagte sie …", "ja sagte sie"),
        ("  a\u200b - b ", "a b"),
        ("Zu\u00adkunft", "Zukunft"),
        ("a\u2060\u0308ndern", "\u00e4ndern"),
        ("\ufeffOui\u200f!", "oui"),
        ("١٢\u06dd", "١٢"),
        (f"Go {ENGLAND}!", "go"),
        ("3€", "3 €"),
        ("geht\u00b4s so dass", "geht's sodass"),
        ("\u210caus", "haus"),  # a capital only once it is made compatible
        ("a + b", "a+b"),
        ("!…", "!..."),
        ("?\u200b!", "? !"),
        (" ?  !", "? !"),
    ],
)
def test_sentences_of_the_same_words_compare_equal(one, other):
    assert comparison_key(one) == comparison_key(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("कि", "का"), ("!", "?"), ("a b", "a c"), ("1+1", "1+2")]
)
def test_sentences_of_other_words_do_not(one, other):
    assert comparison_key(one) != comparison_key(other)


def as_a_whole(text):
    """What `comparison_key` gives, by its definition: no word is taken by itself."""

    def without_signs(part):
        kinds = {character: unicodedata.category(character) for character in part}
        return "".join(
            " " if kinds[c][0] in "ZPS" or kinds[c] == "Cc" or c == "\u200b" else c
            for c in part
            if kinds[c] != "Cf" or c in "\u200b\u200c\u200d\u180e"
        )

    folded = unicodedata.normalize("NFKC", without_signs(text)).casefold()
    return without_signs(unicodedata.normalize("NFKC", folded)).replace(" ", "")


MARKS = st.sampled_from("aAßfi ﬁéΣς\u00ad\u0301\u0327\u1100\u1161\u00b4\u200d.かﾞ§ ")


@given(st.one_of(st.text(MARKS, max_size=20), st.text(max_size=20)))
@settings(max_examples=500, derandomize=True)
def test_words_compare_as_the_sentence_does(text):
    assert comparison_key(f"x {text}") == as_a_whole(f"x {text}")


LETTERS_AND_MARKS = "aäộ\u0323\u0301\u0344\u0327\u0f71\u0f72\u3099각\ufb01\u034f\u0903<\u0338"


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(st.text(LETTERS_AND_MARKS, max_size=40))
@settings(max_examples=200, derandomize=True)
def test_a_long_text_is_normalized_as_a_short_one(form, text):
    for long in ("x" * 2000 + text, text * 200):
        assert normalize_unicode(form, long) == unicodedata.normalize(form, long)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_marks_across_a_letter_stay_with_it_in_a_long_text(form):
    # Of all marks U+0338 has the smallest combining class, 1: it comes before the dot below.
    assert normalize_unicode(form, "<\u0323\u0338a" * 1000) == "\u226e\u0323a" * 1000
