"""Lines whose fields are separated by |||: any text in a field is read back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.text.fields import escape_field, join_fields


def unescape_field(field):
    """Return the text of a field, by the rules in the documentation, written in another way."""
    text = field.replace("&#124;", "|")
    return re.sub(r"&amp;((?:amp;)*#124;)", r"&\1", text)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param("a ||| b", "a &#124;&#124;&#124; b", id="separator"),
        pytest.param("a|||b", "a&#124;&#124;&#124;b", id="separator without spaces"),
        pytest.param("a | b || c", "a | b || c", id="fewer than three bars"),
        pytest.param("||||", "&#124;&#124;&#124;&#124;", id="four bars"),
        pytest.param("&#124;", "&amp;#124;", id="escaped bar"),
        pytest.param("&amp;#124;", "&amp;amp;#124;", id="bar that was escaped twice"),
        pytest.param("AT&T &amp; co", "AT&T &amp; co", id="other entity"),
        pytest.param("", "", id="empty text"),
    ],
)
def test_text_that_looks_like_a_separator_or_an_escaped_bar_is_escaped(text, field):
    """Fields are separated by |||. Fewer bars, and other entities such as &amp;, are kept."""
    assert escape_field(text) == field


PARTS = ["|", "||", "|||", "||||", " ", "&", "&amp;", "&#124;", "&amp;#124;", "#124;", "amp;", "a"]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_any_text_is_read_back_from_its_field(text):
    """`unescape_field` follows the rules in the documentation, as a user's program would."""
    field = escape_field(text)

    assert "|||" not in field
    assert unescape_field(field) == text


def test_a_line_has_as_many_fields_as_texts():
    """Fields are separated by |||, which is escaped in texts."""
    texts = ["0", "||| a ||| b |||", "", "-0.5"]

    line = join_fields(*texts)

    fields = line.split(" ||| ")
    assert [unescape_field(field) for field in fields] == texts
