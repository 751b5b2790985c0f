from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from bleuprint.rules.edits import Punctuation
from bleuprint.text.unicode import replace_unprintable

LANGUAGES = ["en", "de", "es", "fr", "cs", "fi", "ja"]


@cache
def reference(language):
    return MosesPunctNormalizer(language)


# All characters in the library's patterns, and some that their \d, \s, [a-zA-Z] match.
RULES = "".join(sorted({c for pattern, _ in reference("de").substitutions for c in pattern}))
CHARACTERS = RULES + " a1Z²٣é中\t\r\u00a0\u2009\u3000\u200b\x1c,'"
SENTENCES = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.text(" a1%:;.'", max_size=10),
    st.text(" a1\u00a0%:;,.\"'«", max_size=10),
    st.text(" a1bC.,-!?'", max_size=10),
)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=500, derandomize=True, database=None)
@given(SENTENCES)
def test_sentences_are_those_of_sacremoses(language, sentence):
    expected = reference(language).normalize(replace_unprintable(sentence))
    assert Punctuation().edit(sentence, language) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_alone_and_between_words(language):
    for character in [*RULES, *"“„‚‘’´`…—–«»\u00a0"]:
        for form in ("{}", "{0}{0}", "a{}", "{}a", "a {}", "{} a", "1{}1", "1 {}", "a{}b", '"{}'):
            for sentence in (form.format(character), f"x {form.format(character)} x"):
                expected = reference(language).normalize(replace_unprintable(sentence))
                assert Punctuation().edit(sentence, language) == expected, sentence


def test_a_plain_sentence_is_not_sent_through_the_rules(monkeypatch):
    monkeypatch.setattr("bleuprint.rules.edits._normalizer", None)
    assert Punctuation().edit(" It isn't 5.5, is it? Über-all. ", "en") == (
        "It isn't 5.5, is it? Über-all."
    )
