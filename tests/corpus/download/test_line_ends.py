r"""Files whose lines end in \r, which the setting `line_ends: cr` allows."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.config.corpus_files import File, Text
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.download.line_ends import ends_lines_in_cr, with_line_feeds


@given(
    content=st.text(st.sampled_from("ab\r\n")).map(str.encode),
    sizes=st.lists(st.integers(1, 5), min_size=1),
)
def test_line_ends_are_those_of_python_however_the_file_is_read(content, sizes):
    r"""Python's text files have universal newlines: \r, \r\n and \n become \n.

    The file is read in pieces of a few bytes, which may end between \r and \n.
    """
    expected = io.TextIOWrapper(io.BytesIO(content), newline=None).read()
    stream = with_line_feeds(io.BytesIO(content)).raw

    pieces = []
    while piece := stream.read(sizes[len(pieces) % len(sizes)]):
        pieces.append(piece)

    assert b"".join(pieces).decode() == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\rb\r", True),
        (b"a\r\nb\r\n", False),
        (b"a\nb\n", False),
        (b"a\rb\n", False),
        (b"a", False),
        (b"", False),
    ],
)
def test_a_file_of_an_old_mac_is_recognized(content, expected):
    assert ends_lines_in_cr(io.BytesIO(content)) == expected


def test_one_file_of_a_text_may_end_its_lines_in_cr(tmp_path, monkeypatch):
    r"""In the other file, a \r is part of a sentence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "a.de").write_bytes(b"eins\rzwei\r")
    (tmp_path / "inputs" / "a.en").write_bytes(b"o\rne\ntwo\n")
    source = File(path="inputs/a.de", line_ends="cr")
    text = Text("x", source=source, target=File(path="inputs/a.en"))

    assert list(read_text_pairs(text, ("de", "en"))) == [("eins", "o\rne"), ("zwei", "two")]
