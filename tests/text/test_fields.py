"""Lines whose fields are separated by |||: a reader gets the texts back, whatever they contain."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.text.fields import escape_field, join_fields

PARTS = ["|", "||", "|||", "||||", " ", "&", "&amp;", "&#124;", "&amp;#124;", "#124;", "amp;", "a"]


def read(text):
    """The text of a field, by the rules of the docs, written in another way than the code."""
    bars = text.replace("&#124;", "|")
    return re.sub(r"&amp;((?:amp;)*#124;)", r"&\1", bars)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ||| b", "a &#124;&#124;&#124; b"),
        ("a|||b", "a&#124;&#124;&#124;b"),
        ("a | b || c", "a | b || c"),
        ("||||", "&#124;&#124;&#124;&#124;"),
        ("&#124;", "&amp;#124;"),
        ("&amp;#124;", "&amp;amp;#124;"),
        ("AT&T &amp; co", "AT&T &amp; co"),
        ("", ""),
    ],
)
def test_fields_by_hand(text, expected):
    assert escape_field(text) == expected


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_a_field_is_read_back(text):
    assert "|||" not in escape_field(text)
    assert read(escape_field(text)) == text


def test_a_line_has_as_many_fields_as_texts():
    texts = ["0", "||| a ||| b |||", "", "-0.5"]
    assert [read(each) for each in join_fields(*texts).split(" ||| ")] == texts
