import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.text.unicode import blank_unprinted, blank_white, comparable, single_spaces
from corpora import TORTURE


@pytest.mark.parametrize("character", sorted(set(TORTURE) - {"\u00a0", "\u3000"}))
def test_unprinted_characters_separate_words(character):
    text = f"{character}a{character} {character}b{character}"
    assert single_spaces(blank_unprinted(text)) == "a b"


def test_joiners_belong_to_the_spelling():
    for word in ("می\u200cخواهم", "क्\u200dष"):
        assert blank_unprinted(word) == blank_white(word) == word


def test_white_space_of_every_kind():
    assert blank_unprinted("5\u00a0%\t") == "5\u00a0% "
    assert blank_white("5\u00a0%\u2009\u3000\t") == "5 %   "


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
    assert comparable(one) == comparable(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("कि", "का"), ("!", "?"), ("a b", "a c"), ("1+1", "1+2")]
)
def test_sentences_of_other_words_do_not(one, other):
    assert comparable(one) != comparable(other)


def as_a_whole(text):
    """What `comparable` gives, by its definition: no word is taken by itself."""

    def without_signs(part):
        kinds = {character: unicodedata.category(character) for character in part}
        return "".join(
            " "
            if kinds[c][0] in "ZPS" or (kinds[c] in ("Cc", "Cf") and c not in "\u200c\u200d")
            else c
            for c in part
        )

    folded = unicodedata.normalize("NFKC", without_signs(text)).casefold()
    return without_signs(unicodedata.normalize("NFKC", folded)).replace(" ", "")


MARKS = st.sampled_from("aAßfi ﬁéΣς\u0301\u0327\u1100\u1161\u00b4\u200d.かﾞ§ ")


@given(st.one_of(st.text(MARKS, max_size=20), st.text(max_size=20)))
@settings(max_examples=500, derandomize=True)
def test_words_compare_as_the_sentence_does(text):
    assert comparable(f"x {text}") == as_a_whole(f"x {text}")
