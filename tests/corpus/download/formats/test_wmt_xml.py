"""The format wmt-xml: malformed files and unclear references are refused."""

import io

import pytest

from bleuprint.corpus.download.formats.wmt_xml import read_wmt_xml
from bleuprint.runtime.errors import UserError
from parallel_formats import read_error

TWO_REFERENCES = b"""<dataset>
<doc id="one"><src><seg id="1">a</seg></src>
<ref translator="A"><seg id="1">b</seg></ref><ref translator="B"><seg id="1">c</seg></ref></doc>
</dataset>"""
ONE_UNNAMED = b"""<dataset>
<doc id="one"><src><seg id="1">a</seg></src><ref><seg id="1">b</seg></ref></doc></dataset>"""


def test_several_references_without_a_choice_are_refused():
    assert "both: contains references of A, B. Name one: reference: A" in read_error(
        "wmt-xml", TWO_REFERENCES
    )


def test_a_translator_that_the_file_lacks_is_refused():
    pairs = read_wmt_xml(io.BytesIO(TWO_REFERENCES), "x.xml", "C", [])

    with pytest.raises(UserError, match=r"x\.xml: no references of translator 'C'\. .* of A, B$"):
        list(pairs)


def test_the_only_reference_needs_no_name():
    pairs = read_wmt_xml(io.BytesIO(ONE_UNNAMED), "x.xml", None, [])

    assert list(pairs) == [("a", "b")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<dataset><doc>", "both: not well-formed XML: no element found"),
        (ONE_UNNAMED.replace(b'id="1"', b'id="x"'), "a <seg> of doc 'one' has the id 'x'. It must"),
        (ONE_UNNAMED.replace(b'id="1"', b'id="' + b"1" * 5000 + b'"'), "111'. It must be a number"),
        (b"<dataset></dataset>", "both: no pairs were found"),
    ],
)
def test_a_malformed_file_is_refused(content, message):
    assert message in read_error("wmt-xml", content)
