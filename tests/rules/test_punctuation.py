"""The cleaning rule `punctuation`, against the script of Moses as sacremoses has it."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from bleuprint.rules.edits import Punctuation
from bleuprint.text.unicode import replace_unprintable

LANGUAGES = ["en", "de", "es", "fr", "cs", "fi", "ja"]


@cache
def sacremoses_normalizer(language):
    """Return the normalizer of sacremoses for a language."""
    return MosesPunctNormalizer(language)


def normalize_by_sacremoses(sentence, language):
    """Return the sentence that sacremoses makes of a sentence without control characters."""
    return sacremoses_normalizer(language).normalize(replace_unprintable(sentence))


def characters_of_rules():
    """Return all characters in the regular expressions of sacremoses, each once."""
    characters = set()
    for pattern, _ in sacremoses_normalizer("de").substitutions:
        characters.update(pattern)
    return "".join(sorted(characters))


RULE_CHARACTERS = characters_of_rules()
# Some of the others match the \d, \s and [a-zA-Z] of the regular expressions.
ALL_CHARACTERS = RULE_CHARACTERS + " a1Z²٣é中\t\r\u00a0\u2009\u3000\u200b\x1c,'"
SENTENCES = st.one_of(
    st.text(ALL_CHARACTERS, max_size=12),
    st.text(" a1%:;.'", max_size=10),
    st.text(" a1\u00a0%:;,.\"'«", max_size=10),
    st.text(" a1bC.,-!?'", max_size=10),
)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=500, derandomize=True, database=None)
@given(SENTENCES)
def test_punctuation_of_random_sentences_is_normalized_like_by_sacremoses(language, sentence):
    expected = normalize_by_sacremoses(sentence, language)

    assert Punctuation().edit(sentence, language) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_character_in_any_place_is_normalized_as_by_sacremoses(language):
    """A character stands alone, twice, beside a letter, a digit, a space or a quotation mark.

    sacremoses is the reference, from which our faster code is derived.
    """
    forms = ("{}", "{0}{0}", "a{}", "{}a", "a {}", "{} a", "1{}1", "1 {}", "a{}b", '"{}')
    for character in [*RULE_CHARACTERS, *"“„‚‘’´`…—–«»\u00a0"]:
        for form in forms:
            text = form.format(character)
            for sentence in (text, f"x {text} x"):
                expected = normalize_by_sacremoses(sentence, language)
                assert Punctuation().edit(sentence, language) == expected, sentence


def test_a_sentence_with_plain_punctuation_is_not_passed_to_sacremoses(monkeypatch):
    """Its regular expressions are slow, and would change nothing but spaces at the ends."""
    monkeypatch.setattr("bleuprint.rules.edits._normalizer", None)

    edited = Punctuation().edit(" It isn't 5.5, is it? Über-all. ", "en")

    assert edited == "It isn't 5.5, is it? Über-all."
