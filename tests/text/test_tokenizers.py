"""All tokenizers of a corpus: their options, odd characters, and sentences that are read back."""

import math
from functools import cache
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleuprint.text.tokenizers import Tokenize, token_bounds, tokenize_to_line, tokenizer_for
from bleuprint.text.unicode import replace_white_space

# White space, controls and formats, some of which end a line for Python.
ODD_CHARACTERS = "\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x00\ufeff\u200b\u00ad\u00a0\u3000\t\n"
# Formats are removed from words; the other odd characters separate words.
FORMATS = "\u00ad\ufeff\u2060\u200e\u061c\u202a\u2069\u2063"
SEPARATORS = [character for character in ODD_CHARACTERS if character not in FORMATS]
TOKENIZERS = ["moses", "characters", "none"]
if find_spec("spacy"):
    TOKENIZERS.append("spacy")


@cache
def tokenizer(name, language="de", lowercase=False, hyphens=False, escape=False):
    """Return a tokenizer by its name."""
    return tokenizer_for(language, Tokenize(name, lowercase, hyphens, escape))


def test_moses_without_options_splits_words_and_punctuation():
    tokens = tokenizer("moses", "fr").tokenize("L'an-deux, «Ça & là»")

    assert tokens == ["L'", "an-deux", ",", "«", "Ça", "&", "là", "»"]


def test_moses_with_all_options_lowercases_splits_hyphens_and_escapes():
    moses = tokenizer("moses", "fr", lowercase=True, hyphens=True, escape=True)

    tokens = moses.tokenize("L'an-deux, «Ça & là»")

    assert tokens == ["l&apos;", "an", "@-@", "deux", ",", "«", "ça", "&amp;", "là", "»"]
    assert moses.detokenize(tokens) == "l'an-deux, « ça & là »"


def test_moses_with_the_option_hyphens_does_not_escape():
    tokens = tokenizer("moses", "fr", hyphens=True).tokenize("a-b & c")

    assert tokens == ["a", "@-@", "b", "&", "c"]


@pytest.mark.parametrize(
    ("language", "tokens"),
    [("en", ["d", "'accord"]), ("fr", ["d'", "accord"])],
    ids=["English", "French"],
)
def test_moses_splits_apostrophes_by_the_rules_of_the_language(language, tokens):
    assert tokenizer("moses", language).tokenize("d'accord") == tokens


def test_the_tokenizer_characters_marks_spaces_and_is_joined_again():
    """A space is ▁, and the character ▁ is ▁▁."""
    tokens = tokenizer("characters").tokenize(" Ja,  das\u00a0中▁x ")

    assert tokens == ["J", "a", ",", "▁", "d", "a", "s", "▁", "中", "▁▁", "x"]
    assert tokenizer("characters").detokenize(tokens) == "Ja, das 中▁x"


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        pytest.param(["▁", "a", "▁", "▁", "b", "▁"], "a b", id="spaces in odd places"),
        pytest.param([], "", id="no characters"),
    ],
)
def test_characters_of_a_translation_are_joined_with_single_spaces(tokens, sentence):
    assert tokenizer("characters").detokenize(tokens) == sentence


def test_the_tokenizer_none_splits_at_white_space_only():
    tokens = tokenizer("none").tokenize(" Er's  &apos; @-@\u3000a▁b. ")

    assert tokens == ["Er's", "&apos;", "@-@", "a▁b."]
    assert tokenizer("none").detokenize(tokens) == "Er's &apos; @-@ a▁b."


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_sentence_is_lowercased_before_it_is_tokenized(name):
    """In lower case, İ is two characters: i and a dot above (U+0307)."""
    tokens = tokenizer(name, lowercase=True).tokenize("ÖL İ")

    assert tokens == tokenizer(name).tokenize("öl i\u0307")


@pytest.mark.parametrize("name", TOKENIZERS)
def test_turkish_is_lowercased_by_its_own_rules(name):
    """In Turkish, the lower case of İ is i, and that of I is ı."""
    tokens = tokenizer(name, "tr", lowercase=True).tokenize("İzmir ISPARTA")

    assert tokens == tokenizer(name, "tr").tokenize("izmir ısparta")


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("character", SEPARATORS, ids=ascii)
def test_white_space_and_control_characters_separate_words(name, character):
    """They are treated as a space, and never become part of a token."""
    sentence = f"{character}a{character}{character}b{character}"

    assert tokenizer(name).tokenize(sentence) == tokenizer(name).tokenize("a b")
    assert tokenizer(name).tokenize(character) == []


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("character", FORMATS, ids=ascii)
def test_invisible_formats_are_removed_from_words(name, character):
    """A soft hyphen, for example, would make another word of "Wasser"."""
    sentence = f"{character}Was{character}ser {character}ist{character}"

    assert tokenizer(name).tokenize(sentence) == tokenizer(name).tokenize("Wasser ist")
    assert tokenizer(name).tokenize(character) == []


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=200, derandomize=True, database=None)
@given(sentence=st.text(max_size=20) | st.text("▁_ aB'-" + ODD_CHARACTERS, max_size=20))
def test_tokens_contain_no_white_space(name, sentence):
    """Tokens are written with spaces between them, so a space in a token would make two of it."""
    tokens = tokenizer(name, lowercase=True, escape=name == "moses").tokenize(sentence)

    for token in tokens:
        assert token.split() == [token]


# All combinations of the options of Moses.
MOSES_SETTINGS = st.builds(
    Tokenize,
    st.just("moses"),
    lowercase=st.booleans(),
    hyphens=st.booleans(),
    escape=st.booleans(),
    plain=st.booleans(),
)


@settings(max_examples=300, derandomize=True, database=None)
@given(
    sentence=st.text("aZß 9.,'-&„“中\xa0" + ODD_CHARACTERS, max_size=30),
    language=st.sampled_from(["en", "de", "fr"]),
    moses_settings=MOSES_SETTINGS,
)
def test_tokenizing_to_a_line_gives_the_tokens_with_spaces_between_them(
    sentence, language, moses_settings
):
    """`tokenize_to_line` is a faster way, which must not change a token."""
    moses = tokenizer_for(language, moses_settings)

    assert tokenize_to_line(moses, sentence) == " ".join(moses.tokenize(sentence))


@settings(max_examples=400, derandomize=True, database=None)
@given(
    sentence=st.text(max_size=20)
    | st.text("aZß 9.,'-&%@{}:İ\u0301\u0307„“中\xa0" + ODD_CHARACTERS, max_size=30),
    language=st.sampled_from(["en", "de", "fr", "cs", "ja", "hi"]),
    moses_settings=MOSES_SETTINGS,
)
def test_the_number_of_tokens_is_within_bounds_that_are_known_before(
    sentence, language, moses_settings
):
    """To save time, a check of lengths tokenizes only sentences that these bounds do not decide."""
    fewest, most = token_bounds(sentence, moses_settings)

    token_count = len(tokenizer_for(language, moses_settings).tokenize(sentence))

    assert fewest <= token_count <= most


@pytest.mark.parametrize(
    ("sentence", "bounds"),
    [
        pytest.param("Das ist's: ein Zug.", (4, 10), id="words and punctuation"),
        pytest.param("größere Züge", (2, 8), id="letters beyond ASCII"),
        pytest.param("ein\u00ad Zug", (0, math.inf), id="format: no bounds"),
    ],
)
def test_the_bounds_of_plain_text_are_near_the_number_of_tokens(sentence, bounds):
    """Bounds are the fewest and the most tokens that a sentence can have."""
    assert token_bounds(sentence, Tokenize()) == bounds


def test_other_tokenizers_than_moses_may_return_any_number_of_tokens():
    """The bounds from 0 to infinity decide nothing, so the sentence is tokenized."""
    assert token_bounds("ein Zug", Tokenize("characters")) == (0, math.inf)


@pytest.mark.parametrize("name", ["characters", "none"])
@settings(max_examples=200, derandomize=True, database=None)
@given(sentence=st.text(max_size=20) | st.text("▁_ aB'-" + ODD_CHARACTERS, max_size=20))
def test_any_sentence_is_read_back_with_single_spaces(name, sentence):
    """Joining the tokens gives the sentence, in which white space has become single spaces."""
    joined_sentence = tokenizer(name).detokenize(tokenizer(name).tokenize(sentence))

    assert joined_sentence == " ".join(replace_white_space(sentence).split())
