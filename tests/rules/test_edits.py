"""Cleaning rules that edit sentences: entities, tags, mojibake, Unicode and characters in words."""

import unicodedata
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.rules import EDITS
from corpora import LINE_ENDS_ELSEWHERE, TORTURE

NFC = EDITS["unicode"](form="NFC")
NFKC = EDITS["unicode"](form="NFKC")
LINE_ENDS = ["\n", *LINE_ENDS_ELSEWHERE]
# Random sentences with many entities and special characters; without surrogates, which no decoded
# line contains.
SENTENCES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5),
        st.sampled_from([*TORTURE, "&amp;", "&#10;", "&#xA;", "&NewLine;", "„", "u\u0308", "ﬁ"]),
        st.integers(0, 0x110000).map(lambda code: f"&#{code};"),
        st.integers(0, 0x110000).map(lambda code: f"&#x{code:x};"),
        st.sampled_from(sorted(html5)).map(lambda name: f"&{name}"),
    ),
    max_size=8,
).map("".join)


def apply_edit(name, sentence, language="de"):
    """Return a sentence after a cleaning rule without settings, such as `entities`."""
    return EDITS[name]().edit(sentence, language)


@pytest.mark.parametrize(
    ("sentence", "decoded"),
    [
        ("&lt;b&gt; &quot;R&amp;D&quot;", '<b> "R&D"'),
        ("it&#39;s &#x27;s &#X27;s &apos;s", "it's 's 's 's"),
        ("f&uuml;r &Uuml;bung &#252; &#xFC;", "für Übung ü ü"),
        ("&#128512; &hellip; &nbsp;", "😀 … \u00a0"),
        ("&#8364; &#128;", "€ €"),
        ("&amp;lt; &amp;#39; &amp;amp;amp;", "&lt; &#39; &amp;amp;"),
    ],
)
def test_entities_are_decoded_once(sentence, decoded):
    """The text `&amp;lt;` becomes `&lt;`, and not `<`."""
    assert apply_edit("entities", sentence) == decoded


@pytest.mark.parametrize(
    "sentence",
    ["AT&T", "&copy=1&reg=2", "x?a=1&lang=de", "&notit;", "&foo;", "&#;", "&#xZZ;", "& amp;"],
)
def test_text_that_only_looks_like_an_entity_stays(sentence):
    assert apply_edit("entities", sentence) == sentence


LINE_END_CODES = [ord(line_end) for line_end in LINE_ENDS]
UNUSUAL_CODES = [0, 0xD800, 0xFFFF, 0x10FFFF, 0x110000, 9999999]


@pytest.mark.parametrize("code", LINE_END_CODES + UNUSUAL_CODES)
def test_a_numeric_entity_becomes_text_of_one_line_that_can_be_written(code):
    """A sentence that became two lines would shift all lines after it against the other side.

    The codes are those of line ends, and of characters that text may not contain.
    """
    for entity in (f"&#{code};", f"&#x{code:x};"):
        decoded = apply_edit("entities", entity)

        for line_end in LINE_ENDS:
            assert line_end not in decoded
        decoded.encode()  # Fails for characters that UTF-8 does not have.


@pytest.mark.parametrize("entity", ["&#10;", "&#xA;", "&#x0000a;", "&NewLine;", "&#13;"])
def test_an_entity_for_a_line_end_becomes_a_space(entity):
    assert apply_edit("entities", f"a{entity}b") == "a b"


@pytest.mark.parametrize(
    ("sentence", "edited"),
    [
        ("<b>One</b> <I>two</I>", " One   two "),
        ('a<br/>b<br />c<a href="x?y=1">d</a>', "a b c d "),
        ("<h2>x</h2><h7>", " x <h7>"),
    ],
)
def test_html_tags_become_spaces(sentence, edited):
    """HTML has headings of six levels, so `<h7>` is not a tag."""
    assert apply_edit("html_tags", sentence) == edited


def test_text_in_angle_brackets_that_is_not_a_tag_stays():
    sentence = "a < b and b > a, <3, <unk>, List<int>"

    assert apply_edit("html_tags", sentence) == sentence


@pytest.mark.parametrize("wrong_encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("sentence", ["Größe, für Äpfel", "déjà là, ça", "œuvre"])
def test_letters_that_were_read_in_a_wrong_encoding_are_restored(sentence, wrong_encoding):
    """UTF-8 that was read as another encoding is called mojibake: `GrÃ¶ÃŸe` for `Größe`."""
    mojibake = sentence.encode().decode(wrong_encoding)

    assert apply_edit("mojibake", mojibake, "fr") == sentence


def test_punctuation_that_was_read_in_a_wrong_encoding_is_restored():
    sentence = "“l’été“ – 5 €… BJÖRN, WÄRE À"
    mojibake = sentence.encode().decode("cp1252")

    assert apply_edit("mojibake", mojibake, "fr") == sentence


@pytest.mark.parametrize(
    "sentence",
    ["« là\u00a0» «\u00a0thé\u00a0»", "São Â Ã", "â Ãc", "100 Å, „Ä“", "é€", "“AMANHÃ” IRMÃ…"],
)
def test_letters_that_only_look_like_a_wrong_encoding_stay(sentence):
    assert apply_edit("mojibake", sentence, "fr") == sentence


def test_nfc_composes_letters_and_keeps_ligatures():
    assert NFC.edit("u\u0308ber ﬁn ①", "de") == "über ﬁn ①"


def test_nfkc_composes_letters_and_replaces_compatible_characters():
    """They are ligatures, numbers in circles and half-width letters."""
    assert NFKC.edit("u\u0308ber ﬁn ① ｶﾞ", "ja") == "über fin 1 ガ"


@pytest.mark.parametrize("character", sorted(set(TORTURE) - set("\u00a0\u3000\u00ad\ufeff")))
def test_control_characters_become_spaces(character):
    """Spaces stay; the soft hyphen and the byte-order mark vanish."""
    assert apply_edit("non_printing", f"a{character}b") == "a b"


def test_printed_characters_stay():
    sentence = "Grüße, 日本語 – 5\u00a0% «oui» می\u200cخواهم 😀"

    assert apply_edit("non_printing", sentence) == sentence


@pytest.mark.parametrize(
    ("sentence", "edited"),
    [
        pytest.param("Was&shy;ser", "Wasser", id="soft hyphen"),
        pytest.param("Was&#173;ser", "Wasser", id="soft hyphen, decimal"),
        pytest.param("Was&#xAD;ser", "Wasser", id="soft hyphen, hexadecimal"),
        pytest.param("Was&NoBreak;ser", "Wasser", id="word joiner"),
        pytest.param("Was&ZeroWidthSpace;ser", "Was ser", id="space of no width"),
        pytest.param("Was&#x200b;ser", "Was ser", id="space of no width, hexadecimal"),
        pytest.param("Was&#2;ser", "Was ser", id="control character"),
        pytest.param("Was<wbr>ser Was<WBR />ser", "Wasser Wasser", id="tag of a possible break"),
        pytest.param("&rlm;شلום&lrm; \ufeffx", "شلום x", id="direction of writing"),
        pytest.param("می&zwnj;خواهم", "می\u200cخواهم", id="non-joiner of Persian, which stays"),
        pytest.param("\ufeffOui".encode().decode("cp1252"), "Oui", id="mojibake, byte-order mark"),
        pytest.param("a\u200bb".encode().decode("cp1252"), "a b", id="mojibake, space of no width"),
        pytest.param("Was\u00adser".encode().decode("cp1252"), "Wasser", id="mojibake, hyphen"),
        pytest.param("آية &#x6dd;٥", "آية \u06dd٥", id="end of a verse of Arabic, which stays"),
    ],
)
def test_invisible_characters_in_words_vanish_or_become_spaces(sentence, edited):
    """They come as HTML entities, tags or wrongly decoded UTF-8 (mojibake).

    The rules run one after the other, as for a corpus.
    """
    for name in ("entities", "html_tags", "mojibake", "non_printing"):
        sentence = apply_edit(name, sentence)

    assert sentence == edited


@given(SENTENCES)
def test_an_edited_sentence_is_one_line_that_can_be_written(sentence):
    """Each edit gets random sentences. A second line would shift all lines after it."""
    edits = [NFC, NFKC]
    for name in ("entities", "html_tags", "mojibake", "non_printing", "punctuation"):
        edits.append(EDITS[name]())

    for edit in edits:
        edited = edit.edit(sentence, "de")
        assert "\n" not in edited
        edited.encode()  # Fails for characters that UTF-8 does not have.


@given(SENTENCES)
def test_an_edit_has_nothing_left_to_do_in_an_edited_sentence(sentence):
    """Entities are not among these rules, since they are decoded once: `&amp;lt;` is `&lt;`."""
    for edit in (NFC, NFKC, EDITS["non_printing"]()):
        edited_once = edit.edit(sentence, "de")
        assert edit.edit(edited_once, "de") == edited_once


@given(SENTENCES)
def test_the_rule_for_nfc_returns_normalized_sentences(sentence):
    assert unicodedata.is_normalized("NFC", NFC.edit(sentence, "de"))
