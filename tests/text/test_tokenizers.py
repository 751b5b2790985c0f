import math
from functools import cache
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.text.tokenizers import Tokenize, token_bounds, tokenize_to_line, tokenizer_for
from bleuprint.text.unicode import replace_white_space

TORTURE = "\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x00\ufeff\u200b\u00ad\u00a0\u3000\t\n"
SEPARATORS = TORTURE.replace("\ufeff", "").replace("\u00ad", "")
KINDS = ["moses", "characters", "none", *(["spacy"] if find_spec("spacy") else [])]


@cache
def tokenizer(by, language="de", lowercase=False, hyphens=False, escape=False):
    return tokenizer_for(language, Tokenize(by, lowercase, hyphens, escape))


def test_moses_with_its_choices():
    sentence = "L'an-deux, «Ça & là»"
    tokens = ["L'", "an-deux", ",", "«", "Ça", "&", "là", "»"]
    assert tokenizer("moses", "fr").tokenize(sentence) == tokens
    tokens = ["l&apos;", "an", "@-@", "deux", ",", "«", "ça", "&amp;", "là", "»"]
    chosen = tokenizer("moses", "fr", lowercase=True, hyphens=True, escape=True)
    assert chosen.tokenize(sentence) == tokens
    assert chosen.detokenize(tokens) == "l'an-deux, « ça & là »"
    assert tokenizer("moses", "fr", hyphens=True).tokenize("a-b & c") == ["a", "@-@", "b", "&", "c"]


def test_each_side_has_its_language():
    assert tokenizer("moses", "en").tokenize("d'accord") == ["d", "'accord"]
    assert tokenizer("moses", "fr").tokenize("d'accord") == ["d'", "accord"]


def test_characters():
    tokens = tokenizer("characters").tokenize(" Ja,  das\u00a0中▁x ")
    assert tokens == ["J", "a", ",", "▁", "d", "a", "s", "▁", "中", "▁▁", "x"]
    assert tokenizer("characters").detokenize(tokens) == "Ja, das 中▁x"


def test_characters_that_a_model_puts_together_badly():
    assert tokenizer("characters").detokenize(["▁", "a", "▁", "▁", "b", "▁"]) == "a b"
    assert tokenizer("characters").detokenize([]) == ""


def test_none_leaves_the_tokens_of_the_text():
    tokens = tokenizer("none").tokenize(" Er's  &apos; @-@\u3000a▁b. ")
    assert tokens == ["Er's", "&apos;", "@-@", "a▁b."]
    assert tokenizer("none").detokenize(tokens) == "Er's &apos; @-@ a▁b."


@pytest.mark.parametrize("by", KINDS)
def test_lower_case_comes_first(by):
    assert tokenizer(by, lowercase=True).tokenize("ÖL İ") == tokenizer(by).tokenize("öl i\u0307")


@pytest.mark.parametrize("by", KINDS)
@pytest.mark.parametrize("character", SEPARATORS, ids=lambda c: f"U+{ord(c):04X}")
def test_odd_characters_separate_words(by, character):
    sentence = f"{character}a{character}{character}b{character}"
    assert tokenizer(by).tokenize(sentence) == tokenizer(by).tokenize("a b")
    assert tokenizer(by).tokenize(character) == []


@pytest.mark.parametrize("by", KINDS)
@pytest.mark.parametrize("character", "\u00ad\ufeff\u2060\u200e\u061c\u202a\u2069\u2063")
def test_formats_are_in_no_word(by, character):
    sentence = f"{character}Was{character}ser {character}ist{character}"
    assert tokenizer(by).tokenize(sentence) == tokenizer(by).tokenize("Wasser ist")
    assert tokenizer(by).tokenize(character) == []


@pytest.mark.parametrize("by", KINDS)
def test_lower_case_in_turkish(by):
    expected = tokenizer(by, "tr").tokenize("izmir ısparta")
    assert tokenizer(by, "tr", lowercase=True).tokenize("İzmir ISPARTA") == expected


@pytest.mark.parametrize("by", KINDS)
@settings(max_examples=200, derandomize=True, database=None)
@given(st.text(max_size=20) | st.text("▁_ aB'-" + TORTURE, max_size=20))
def test_tokens_hold_no_white_space(by, sentence):
    for token in tokenizer(by, lowercase=True, escape=by == "moses").tokenize(sentence):
        assert token.split() == [token]


@settings(max_examples=300, derandomize=True, database=None)
@given(
    st.text("aZß 9.,'-&„“中\xa0" + TORTURE, max_size=30),
    st.sampled_from(["en", "de", "fr"]),
    st.tuples(*[st.booleans()] * 4),
)
def test_tokens_as_text_are_those_of_the_list(sentence, language, options):
    lowercase, hyphens, escape, plain = options
    by = tokenizer_for(language, Tokenize("moses", lowercase, hyphens, escape, plain=plain))
    assert tokenize_to_line(by, sentence) == " ".join(by.tokenize(sentence))


@settings(max_examples=400, derandomize=True, database=None)
@given(
    st.text(max_size=20) | st.text("aZß 9.,'-&%@{}:İ\u0301\u0307„“中\xa0" + TORTURE, max_size=30),
    st.sampled_from(["en", "de", "fr", "cs", "ja", "hi"]),
    st.tuples(*[st.booleans()] * 4),
)
def test_a_sentence_has_as_many_tokens_as_its_bounds_say(sentence, language, options):
    lowercase, hyphens, escape, plain = options
    chosen = Tokenize("moses", lowercase, hyphens, escape, plain=plain)
    least, most = token_bounds(sentence, chosen)
    assert least <= len(tokenizer_for(language, chosen).tokenize(sentence)) <= most


def test_bounds_are_near_in_plain_text_and_none_with_other_tokenizers():
    assert token_bounds("Das ist's: ein Zug.", Tokenize()) == (4, 10)
    assert token_bounds("größere Züge", Tokenize()) == (2, 8)
    assert token_bounds("ein\u00ad Zug", Tokenize()) == (0, math.inf)
    assert token_bounds("ein Zug", Tokenize("characters")) == (0, math.inf)


@pytest.mark.parametrize("by", ["characters", "none"])
@settings(max_examples=200, derandomize=True, database=None)
@given(st.text(max_size=20) | st.text("▁_ aB'-" + TORTURE, max_size=20))
def test_sentences_come_back_but_for_their_spaces(by, sentence):
    found = tokenizer(by).detokenize(tokenizer(by).tokenize(sentence))
    assert found == " ".join(replace_white_space(sentence).split())
