import unicodedata
from html.entities import html5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.rules import EDITS
from corpora import LINE_ENDS_ELSEWHERE, TORTURE

ENTITIES, UNPRINTED, PUNCTUATION = (EDITS[n]() for n in ("entities", "non_printing", "punctuation"))
TAGS, MOJIBAKE = EDITS["html_tags"](), EDITS["mojibake"]()
NFC, NFKC = (EDITS["unicode"](form=form) for form in ("NFC", "NFKC"))

LINE_ENDS = ["\n", *LINE_ENDS_ELSEWHERE]
# Sentences with what edits are about; without surrogates, which no decoded line can hold.
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


@pytest.mark.parametrize(
    ("written", "decoded"),
    [
        ("&lt;b&gt; &quot;R&amp;D&quot;", '<b> "R&D"'),
        ("it&#39;s &#x27;s &#X27;s &apos;s", "it's 's 's 's"),
        ("f&uuml;r &Uuml;bung &#252; &#xFC;", "für Übung ü ü"),
        ("&#128512; &hellip; &nbsp;", "😀 … \u00a0"),
        ("&#8364; &#128;", "€ €"),
        ("&amp;lt; &amp;#39; &amp;amp;amp;", "&lt; &#39; &amp;amp;"),
    ],
)
def test_entities_are_decoded_once(written, decoded):
    assert ENTITIES.edit(written, "de") == decoded


@pytest.mark.parametrize(
    "sentence",
    ["AT&T", "&copy=1&reg=2", "x?a=1&lang=de", "&notit;", "&foo;", "&#;", "&#xZZ;", "& amp;"],
)
def test_what_is_no_entity_stays(sentence):
    assert ENTITIES.edit(sentence, "de") == sentence


def test_no_number_decodes_to_a_line_end():
    for code in [*map(ord, LINE_ENDS), 0, 0xD800, 0xFFFF, 0x10FFFF, 0x110000, 9999999]:
        for written in (f"&#{code};", f"&#x{code:x};"):
            decoded = ENTITIES.edit(written, "de")
            assert not any(end in decoded for end in LINE_ENDS)
            decoded.encode()


@pytest.mark.parametrize(
    ("sentence", "edited"),
    [
        ("<b>One</b> <I>two</I>", " One   two "),
        ('a<br/>b<br />c<a href="x?y=1">d</a>', "a b c d "),
        ("<h2>x</h2><h7>", " x <h7>"),
        ("a < b and b > a, <3, <unk>, List<int>", "a < b and b > a, <3, <unk>, List<int>"),
    ],
)
def test_tags_become_spaces(sentence, edited):
    assert TAGS.edit(sentence, "en") == edited


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("text", ["Größe, für Äpfel", "déjà là, ça", "œuvre"])
def test_letters_read_in_another_encoding_are_restored(text, encoding):
    assert MOJIBAKE.edit(text.encode().decode(encoding), "fr") == text


def test_punctuation_read_in_another_encoding_is_restored():
    text = "“l’été“ – 5 €… BJÖRN, WÄRE À"
    assert MOJIBAKE.edit(text.encode().decode("cp1252"), "fr") == text


@pytest.mark.parametrize(
    "text",
    ["« là\u00a0» «\u00a0thé\u00a0»", "São Â Ã", "â Ãc", "100 Å, „Ä“", "é€", "“AMANHÃ” IRMÃ…"],
)
def test_letters_that_are_meant_stay(text):
    assert MOJIBAKE.edit(text, "fr") == text


def test_unicode_forms():
    assert NFC.edit("u\u0308ber ﬁn ①", "de") == "über ﬁn ①"
    assert NFKC.edit("u\u0308ber ﬁn ① ｶﾞ", "ja") == "über fin 1 ガ"


@pytest.mark.parametrize("character", sorted({*TORTURE} - {*"\u00a0\u3000\u00ad\ufeff"}))
def test_controls_become_spaces(character):
    assert UNPRINTED.edit(f"a{character}b", "de") == "a b"


@pytest.mark.parametrize(
    ("written", "edited"),
    [
        *((f"Was{entity}ser", "Wasser") for entity in ("&shy;", "&#173;", "&#xAD;", "&NoBreak;")),
        *((f"Was{entity}ser", "Was ser") for entity in ("&ZeroWidthSpace;", "&#x200b;", "&#2;")),
        ("Was<wbr>ser Was<WBR />ser", "Wasser Wasser"),
        ("&rlm;شلום&lrm; \ufeffx", "شلום x"),
        ("می&zwnj;خواهم", "می\u200cخواهم"),
        ("\ufeffOui".encode().decode("cp1252"), "Oui"),
        ("a\u200bb".encode().decode("cp1252"), "a b"),
        ("Was\u00adser".encode().decode("cp1252"), "Wasser"),
        ("آية &#x6dd;٥", "آية \u06dd٥"),
    ],
)
def test_formats_within_words(written, edited):
    for edit in (ENTITIES, TAGS, MOJIBAKE, UNPRINTED):
        written = edit.edit(written, "de")
    assert written == edited


@given(SENTENCES)
def test_no_edit_makes_a_line_break_or_what_cannot_be_written(sentence):
    for edit in (ENTITIES, TAGS, MOJIBAKE, NFC, NFKC, UNPRINTED, PUNCTUATION):
        edited = edit.edit(sentence, "de")
        assert "\n" not in edited
        edited.encode()


@given(SENTENCES)
def test_edits_but_entities_have_nothing_left_to_do(sentence):
    for edit in (NFC, NFKC, UNPRINTED):
        once = edit.edit(sentence, "de")
        assert edit.edit(once, "de") == once
    assert unicodedata.is_normalized("NFC", NFC.edit(sentence, "de"))


@pytest.mark.parametrize("written", ["&#10;", "&#xA;", "&#x0000a;", "&NewLine;", "&#13;"])
def test_an_entity_that_ends_a_line_becomes_a_space(written):
    assert ENTITIES.edit(f"a{written}b", "de") == "a b"


def test_what_is_printed_stays():
    text = "Grüße, 日本語 – 5\u00a0% «oui» می\u200cخواهم 😀"
    assert UNPRINTED.edit(text, "de") == text
