import pytest

from bleuprint.characters import blank_unprinted, blank_white, normalise
from corpora import TORTURE


@pytest.mark.parametrize("character", set(TORTURE) - {"\u00a0", "\u3000"})
def test_unprinted_characters_separate_words(character):
    assert normalise(f"{character}a{character} {character}b{character}", "none") == "a b"


def test_joiners_belong_to_the_spelling():
    for word in ("می\u200cخواهم", "क्\u200dष"):
        assert normalise(word, "NFC") == word
        assert blank_white(word) == word


def test_unicode_forms():
    decomposed = "u\u0308ber \u2460"
    assert normalise(decomposed, "NFC") == "\u00fcber \u2460"
    assert normalise(decomposed, "NFKC") == "\u00fcber 1"
    assert normalise(decomposed, "none") == decomposed


def test_white_space_of_every_kind():
    assert blank_unprinted("5\u00a0%\t") == "5\u00a0% "
    assert blank_white("5\u00a0%\u2009\u3000\t") == "5 %   "


@pytest.mark.parametrize("form", ["NFC", "NFKC", "none"])
def test_what_is_normal_stays_as_it_is(form):
    text = "".join(map(chr, range(1, 0x3000)))
    once = normalise(text, form)
    assert normalise(once, form) == once
