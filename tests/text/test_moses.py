"""The Moses tokenizer: a fast version of sacremoses with the same tokens."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesDetokenizer, MosesTokenizer

from bleuprint.runtime import memoize
from bleuprint.text.moses import Moses
from bleuprint.text.unicode import replace_white_space

# White space, control characters, and characters at which Python's splitlines() ends lines.
ODD_CHARACTERS = "\r\x85\u2028\u2029\x0b\x0c\x1c\x1d\x1e\x00\ufeff\u200b\u00ad\u00a0\u3000\t"

# What the expressions and the period rule of sacremoses look for, and what may hide it from them.
CHARACTERS = (
    " .,'’`-\"1aAéÄ…@%$()[]<>&|中あ한2²xsStTDß€;:!?/_*«»–。🙂र्\u0301\u200d\U00020000"
    + ODD_CHARACTERS
)
PIECES = [
    "DOTMULTI",
    "DOT",
    "MULTI",
    "..",
    "...",
    "' '",
    ", ,",
    "'  '",
    ",'",
    "', ",
    " .",
    ". ",
    ". 1",
    ". a",
    ". A",
    ".'",
    "Dr.",
    "No.",
    "Nr.",
    "z.B.",
    "U.S.",
    "p.",
    "Art.",
    "art. 3",
    "2,5",
    "1,",
    "'s",
    "n't",
    "l'",
    "d'œ",
    "'tis",
    "a-b",
    "1-1",
    "--",
    "-@-",
    "@-@",
    "&apos;",
    "THISISPROTECTED000",
    "EU:n",
    "x@y.de",
    "http://a.b/c",
    "中.",
    "   ",
]
SENTENCES = st.one_of(
    st.text(CHARACTERS, max_size=16),
    st.text(" ,.'1aA-", max_size=16),
    st.text(" ,'.", max_size=10),
    st.lists(st.sampled_from([*PIECES, *CHARACTERS]), max_size=12).map("".join),
)
LANGUAGES = ["en", "de", "fr", "it", "fi", "cs", "ja", "ko", "tlh"]


@cache
def sacremoses_tokenizer(language):
    """Return the tokenizer of sacremoses, whose creation takes long."""
    return MosesTokenizer(language)


@cache
def our_tokenizer(language, hyphens, escape):
    """Return our tokenizer; kept, so that its cache of words is tested, too."""
    return Moses(language, hyphens, escape)


def tokens_of_sacremoses(sentence, language, hyphens=False, escape=False):
    """Return the tokens of a sentence by sacremoses, after odd white space was replaced."""
    return sacremoses_tokenizer(language).tokenize(
        replace_white_space(sentence), aggressive_dash_splits=hyphens, escape=escape
    )


@pytest.mark.parametrize("escape", [False, True])
@pytest.mark.parametrize("hyphens", [False, True])
@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=60, derandomize=True, database=None)
@given(SENTENCES)
def test_tokens_of_any_sentence_equal_those_of_sacremoses(language, hyphens, escape, sentence):
    """Random sentences contain the characters and words that sacremoses treats specially."""
    tokens = our_tokenizer(language, hyphens, escape).tokenize(sentence)

    assert tokens == tokens_of_sacremoses(sentence, language, hyphens, escape)


WORDS = [*"',.", "'1", "'a", ",1", ",a", "a.", "No.", "p.", "a.b.", "1.", "..", "1'", "a'"]
ENDS = ["", " a", " A", " 1", " ²", " 'a", " '1", " ,1", " .", " ..", " ß", " ª"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("start", ["", "a ", "1 ", "a' ", "1' ", "1, ", ".. ", "A. "])
def test_periods_apostrophes_and_commas_are_split_by_their_neighbors_as_by_sacremoses(
    language, start
):
    """All combinations of a start, a word such as "No." or "'a", and an end such as " 1"."""
    tokenizer = our_tokenizer(language, hyphens=False, escape=False)

    for word in WORDS:
        for end in ENDS:
            sentence = start + word + end
            tokens = tokenizer.tokenize(sentence)
            assert tokens == tokens_of_sacremoses(sentence, language), sentence


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    "template",
    ["{char}a", "1{char}", "a.{char} {char}b.", "a. {char}", "a'{char} {char}'a {char},1"],
)
def test_each_kind_of_character_is_split_as_by_sacremoses(language, template):
    """Expressions of sacremoses ask for kinds of characters, such as letters and digits."""
    # All characters up to U+024F, and a sample of those up to U+3100.
    code_points = [*range(0x250), *range(0x250, 0x3100, 32)]
    sentence = "  x  ".join(template.format(char=chr(code)) for code in code_points)

    tokens = our_tokenizer(language, hyphens=True, escape=False).tokenize(sentence)

    assert tokens == tokens_of_sacremoses(sentence, language, hyphens=True)


def test_a_small_cache_of_words_does_not_change_the_tokens(monkeypatch):
    """The tokenizer stores the tokens of words; here of 3 words with at most 6 characters.

    The sentence contains words whose tokens depend on the next word, such as "No." before a number.
    """
    monkeypatch.setattr(memoize, "MAX_WORDS", 3)
    monkeypatch.setattr(memoize, "MAX_LENGTH", 6)
    tokenizer = Moses("en", splits_at_hyphens=False, escapes_xml=False)
    sentence = "No. 5 (isn't) Ann's, no. five is. (isn't) unfortunately, Ann's. No. Five"

    expected = tokens_of_sacremoses(sentence, "en")

    for _ in range(3):
        assert tokenizer.tokenize(sentence) == expected
        assert 0 < len(tokenizer._tokens_by_key) <= 3
        assert max(len(key) for key in tokenizer._tokens_by_key) <= 6


GERMAN_EXAMPLE = ('Dr. Weiß sagt: "Nein, danke."', 'Dr. Weiß sagt : " Nein , danke . "')
ENGLISH_EXAMPLE = ("It isn't Ann's; it's 3.5% <b>", "It isn 't Ann 's ; it 's 3.5 % < b >")
FRENCH_EXAMPLE = ("L'ami d'Anne n'a qu'un vélo.", "L' ami d' Anne n' a qu' un vélo .")


@pytest.mark.parametrize(
    ("language", "sentence", "tokens"),
    [("de", *GERMAN_EXAMPLE), ("en", *ENGLISH_EXAMPLE), ("fr", *FRENCH_EXAMPLE)],
    ids=["German", "English", "French"],
)
def test_a_sentence_is_split_into_tokens(language, sentence, tokens):
    tokenizer = Moses(language, splits_at_hyphens=False, escapes_xml=False)

    assert tokenizer.tokenize(sentence) == tokens.split()


@pytest.mark.parametrize(
    ("language", "sentence", "tokens"),
    [("de", *GERMAN_EXAMPLE), ("fr", *FRENCH_EXAMPLE)],
    ids=["German", "French"],
)
def test_tokens_are_joined_to_the_sentence(language, sentence, tokens):
    tokenizer = Moses(language, splits_at_hyphens=False, escapes_xml=False)

    assert tokenizer.detokenize(tokens.split()) == sentence


def test_without_escape_entities_are_neither_written_nor_read():
    tokenizer = Moses("en", splits_at_hyphens=False, escapes_xml=False)

    assert tokenizer.tokenize("a & b | [c]") == ["a", "&", "b", "|", "[", "c", "]"]
    assert tokenizer.detokenize(["&lt;"]) == "&lt;"
    assert tokenizer.detokenize(["&", "amp", ";"]) == "& amp;"


def test_with_escape_entities_are_written_and_read():
    tokenizer = Moses("en", splits_at_hyphens=False, escapes_xml=True)
    sentence = "a & b | [c] d's"
    tokens = ["a", "&amp;", "b", "&#124;", "&#91;", "c", "&#93;", "d", "&apos;s"]

    assert tokenizer.tokenize(sentence) == tokens
    assert tokenizer.detokenize(tokens) == sentence


def test_one_level_of_escapes_is_undone():
    """The text &lt; was escaped to &amp;lt; and must not become <."""
    tokenizer = Moses("en", splits_at_hyphens=False, escapes_xml=True)

    assert tokenizer.detokenize(["&amp;lt;"]) == "&lt;"


def test_hyphens_in_words_are_split_and_joined_again():
    """The token @-@ marks a hyphen inside a word."""
    tokenizer = Moses("en", splits_at_hyphens=True, escapes_xml=True)
    sentence = 'a four-year-old - not "well-known"'
    tokens = "a four @-@ year @-@ old - not &quot; well @-@ known &quot;"

    assert " ".join(tokenizer.tokenize(sentence)) == tokens
    assert tokenizer.detokenize(tokens.split(" ")) == sentence


def test_without_the_option_hyphens_in_words_are_not_split():
    tokenizer = Moses("en", splits_at_hyphens=False, escapes_xml=True)

    assert tokenizer.tokenize("well-known") == ["well-known"]


@pytest.mark.parametrize("escape", [False, True])
@pytest.mark.parametrize("language", ["en", "de", "fr", "fi", "ja"])
@settings(max_examples=60, derandomize=True, database=None)
@given(
    pieces=st.lists(st.sampled_from([*PIECES, *CHARACTERS, '"', "@-@", "&quot;", "'"]), max_size=12)
)
def test_any_tokens_are_joined_as_by_sacremoses(language, escape, pieces):
    """The pieces are those that the expressions of sacremoses look for."""
    tokens = " ".join(pieces).split()

    sentence = our_tokenizer(language, hyphens=False, escape=escape).detokenize(tokens)

    assert sentence == MosesDetokenizer(language).detokenize(tokens, unescape=escape)


def test_sacremoses_fails_at_a_czech_hyphen_after_an_apostrophe():
    """If this test fails, sacremoses has corrected the error that the next test is about."""
    with pytest.raises(TypeError):
        MosesDetokenizer("cs").detokenize(["a'", "-", "li"])


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        pytest.param(["x", "a'", "-", "li"], "x a'-li", id="apostrophe before the hyphen"),
        pytest.param(
            ["a&apos;", "–", "Mailu", "-", "li"], "a'–Mailu - li", id="escaped apostrophe and dash"
        ),
    ],
)
def test_czech_hyphens_after_an_apostrophe_are_joined(tokens, sentence):
    """At such tokens, sacremoses fails with a TypeError (see the test before)."""
    tokenizer = Moses("cs", splits_at_hyphens=False, escapes_xml=True)

    assert tokenizer.detokenize(tokens) == sentence
