"""Every format of parallel text is read in the same way: what ends a line, what is an error."""

import io
import re
import tracemalloc
from itertools import chain, repeat
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.config.corpus_files import File, Text
from bleuprint.config.text_formats import TWO_SIDED, Format
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair
from parallel_formats import PAIRS, published_files, read_error, read_pairs, text_settings

# An archive, of format moses, is read as plain text: test_opus_archives.py.
FORMATS = [name for name in get_args(Format) if name != "moses"]
# The formats that are read as XML, whose errors are those of the XML parser.
XML_FORMATS = ("tmx", "wmt-xml")
# Formats with a file per language, whose sentences are not aligned.
FORMATS_OF_TWO_FILES = [name for name in FORMATS if name not in TWO_SIDED and name != "documents"]
# Formats with a sentence per line; in the others, line breaks in sentences become spaces.
LINE_FORMATS = ["plain", "documents", "tsv", "ted-tags"]
# Tables whose cells may contain any character.
CELL_FORMATS = ["csv", "jsonl", "parquet"]
TEXT_FORMATS = [name for name in FORMATS if name != "parquet"]
MARKUP_FORMATS = ["sgml", "ted-xml", "tmx"]

# Characters at which Python ends lines, but this project does not.
LINE_ENDS_ELSEWHERE = ["\r", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"]


def expected_pairs(text_format, pairs=PAIRS):
    """Return the pairs that must be read from the published files of a text."""
    if text_format == "ted-tags":
        # The title of a talk is a sentence, too.
        return [Pair("Ofen", "Ofen"), *pairs]
    return pairs


def last_file_name(text_format):
    """Return the name of the last file of a text in a format, as messages name it."""
    return "inputs/both" if text_format in TWO_SIDED else "inputs/x.en"


@pytest.mark.parametrize("text_format", FORMATS)
def test_published_pairs_are_read_back(text_format):
    assert read_pairs(text_format, *published_files(text_format)) == expected_pairs(text_format)


@pytest.mark.parametrize("text_format", FORMATS)
def test_only_lines_with_metadata_are_dropped(text_format):
    """The file of ted-tags has a line with the talk's URL, and a line with its number."""
    counts = SetCounts()

    read_pairs(text_format, *published_files(text_format), counts=counts)

    expected_dropped = {"metadata": 2} if text_format == "ted-tags" else {}
    assert counts.dropped == expected_dropped


@pytest.mark.parametrize("text_format", TEXT_FORMATS)
def test_byte_order_marks_and_carriage_returns_at_line_ends_are_removed(text_format):
    """Programs on Windows write a byte order mark at the start, and CR LF at each line end.

    `published_files` returns a small text as files of the format; these files are read as if they
    came from Windows.
    """
    byte_order_mark = b"\xef\xbb\xbf"
    windows_files = []
    for content in published_files(text_format):
        windows_files.append(byte_order_mark + content.replace(b"\n", b"\r\n"))

    assert read_pairs(text_format, *windows_files) == expected_pairs(text_format)


@pytest.mark.parametrize("text_format", FORMATS)
def test_files_without_a_sentence_are_an_error(text_format):
    """A download that fails silently would otherwise become an empty corpus."""
    files = []
    for content in published_files(text_format, pairs=[]):
        # In ted-tags, the title of a talk is a sentence, too.
        files.append(content.replace(b"<title>Ofen</title>\n", b""))

    message = read_error(text_format, *files)

    assert last_file_name(text_format) in message
    assert "no pairs" in message


@pytest.mark.parametrize("text_format", [*MARKUP_FORMATS, "parquet"])
def test_a_file_that_is_cut_short_anywhere_is_an_error(text_format):
    """A download that broke off must not become a shorter text."""
    files = published_files(text_format)
    last_file = files.pop()
    # A file of ted-xml may lack its last tag, since all sentences are before it.
    if text_format in MARKUP_FORMATS:
        last_file = last_file.rstrip(b"\n").removesuffix(b"\n</mteval>")

    assert read_pairs(text_format, *files, last_file) == expected_pairs(text_format)
    for length in range(len(last_file)):
        message = read_error(text_format, *files, last_file[:length])
        assert last_file_name(text_format) in message


@pytest.mark.parametrize("text_format", FORMATS_OF_TWO_FILES)
@pytest.mark.parametrize("shorter_side", [0, 1], ids=["source is shorter", "target is shorter"])
def test_sides_of_different_length_are_an_error_that_names_both_files(text_format, shorter_side):
    """`published_files` returns the pairs PAIRS as files; one file lacks the last sentence."""
    files = published_files(text_format)
    files[shorter_side] = published_files(text_format, PAIRS[:-1])[shorter_side]

    message = read_error(text_format, *files)

    assert "inputs/x.de" in message
    assert "inputs/x.en" in message
    assert "not parallel" in message


def line_number(content, word):
    """Return the number of the first line with a word, counted from 1."""
    return content[: content.index(word.encode())].count(b"\n") + 1


@pytest.mark.parametrize("text_format", [name for name in TEXT_FORMATS if name not in XML_FORMATS])
def test_a_file_in_latin_1_is_an_error_that_names_the_line(text_format):
    """In Latin-1, the letter ä of "schläft" is the byte 0xe4, which is not valid UTF-8."""
    files = published_files(text_format)
    number = line_number(files[0], "schläft")
    files[0] = files[0].decode().encode("latin-1")

    message = read_error(text_format, *files)

    # Formats in TWO_SIDED have one file with both languages.
    first_file_name = "inputs/both" if text_format in TWO_SIDED else "inputs/x.de"
    assert message.startswith(f"{first_file_name}:{number}: ")
    assert "is 0xe4: not UTF-8. As CP1252 the line reads '" in message


@pytest.mark.parametrize("text_format", XML_FORMATS)
def test_a_latin_1_xml_file_that_declares_no_encoding_is_an_error(text_format):
    """Without a declaration, XML is UTF-8, in which the letter ä of "schläft" is invalid here."""
    content = published_files(text_format)[0]
    number = line_number(content, "schläft")

    message = read_error(text_format, content.decode().encode("latin-1"))

    assert message.startswith("inputs/both: not well-formed XML: ")
    assert f": line {number}," in message


CONTROL_CHARACTERS = ["\0", *LINE_ENDS_ELSEWHERE]


@pytest.mark.parametrize("character", CONTROL_CHARACTERS, ids=ascii)
@pytest.mark.parametrize("text_format", LINE_FORMATS + CELL_FORMATS)
def test_a_control_character_in_a_line_is_kept(text_format, character):
    """Only a newline ends a line, although Python's str.splitlines ends one at these characters."""
    pair_with_character = Pair(f"eins{character}zwei", "one two")
    pairs = [pair_with_character, *PAIRS[1:]]

    pairs_read = read_pairs(text_format, *published_files(text_format, pairs))

    assert pair_with_character in pairs_read
    assert len(pairs_read) == len(expected_pairs(text_format, pairs))


@pytest.mark.parametrize("character", CONTROL_CHARACTERS, ids=ascii)
@pytest.mark.parametrize("text_format", ["sgml", "ted-xml"])
def test_white_space_in_a_sentence_of_mteval_formats_becomes_a_space(text_format, character):
    """The scoring program mteval reads these formats in the same way."""
    pairs = [Pair(f"eins{character}zwei", "one two"), *PAIRS[1:]]

    pairs_read = read_pairs(text_format, *published_files(text_format, pairs))

    separator = " " if character.isspace() else character
    assert len(pairs_read) == len(pairs)
    assert Pair(f"eins{separator}zwei", "one two") in pairs_read


@pytest.mark.parametrize(
    ("character", "separator"),
    [("\r", " "), ("\x85", "\x85"), ("\u2028", "\u2028"), ("\u2029", "\u2029")],
    ids=ascii,
)
def test_in_tmx_only_the_white_space_of_xml_becomes_a_space(character, separator):
    """XML counts a carriage return as white space, but not these other line ends of Unicode."""
    pairs = [Pair(f"eins{character}zwei", "one two"), *PAIRS[1:]]

    pairs_read = read_pairs("tmx", *published_files("tmx", pairs))

    assert len(pairs_read) == len(pairs)
    assert Pair(f"eins{separator}zwei", "one two") in pairs_read


@pytest.mark.parametrize("character", ["\0", "\x0b", "\x0c", "\x1c", "\x1e"], ids=ascii)
def test_in_tmx_a_control_character_is_an_error_of_xml(character):
    pairs = [Pair(f"eins{character}zwei", "one two"), *PAIRS[1:]]

    assert "(invalid token)" in read_error("tmx", *published_files("tmx", pairs))


@pytest.mark.parametrize("text_format", TEXT_FORMATS)
def test_half_of_a_surrogate_pair_in_utf_8_is_an_error(text_format):
    files = published_files(text_format)
    files[-1] = files[-1].replace(b"stove", b"\xed\xa0\x80")

    assert last_file_name(text_format) in read_error(text_format, *files)


# Sentences of documents are aligned by their lengths, so that a long one would be dropped.
@pytest.mark.parametrize("text_format", [name for name in FORMATS if name != "documents"])
def test_a_sentence_may_have_millions_of_characters(text_format):
    """Readers work in blocks; a sentence longer than a block must not be cut."""
    long_pair = Pair("ä" * 2_000_000, "b c " * 500_000 + "d")
    pairs = [PAIRS[0], long_pair, PAIRS[1]]

    pairs_read = read_pairs(text_format, *published_files(text_format, pairs))

    assert pairs_read == expected_pairs(text_format, pairs)


class RepeatedFile(io.RawIOBase):
    """A file of which a part is repeated; it is never in memory as a whole."""

    def __init__(self, head, body, tail, times):
        """Create a file of a head, a body that is repeated some times, and a tail."""
        self._parts = chain([head], repeat(body, times), [tail])
        self._remaining = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        """Read bytes into a buffer, and return their number; 0 at the end of the file."""
        while not self._remaining:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._remaining = part
        size = min(len(buffer), len(self._remaining))
        buffer[:size] = self._remaining[:size]
        self._remaining = self._remaining[size:]
        return size


def peak_memory(text_format, times):
    """Return the bytes of memory that reading files takes which repeat the published ones."""
    streams = []
    for content in published_files(text_format):
        head, body, tail = b"", content, b""
        # Only the units of a TMX file may be repeated.
        units = re.fullmatch(rb"(.*?)(<tu>.*</tu>\n)(.*)", content, re.DOTALL)
        if units:
            head, body, tail = units.groups()
        streams.append(io.BufferedReader(RepeatedFile(head, body, tail, times)))
    text = text_settings(text_format)
    tracemalloc.start()
    try:
        pairs = read_text(text, streams, ("de", "en"), SetCounts(), [])
        assert sum(1 for _ in pairs) == times * len(expected_pairs(text_format))
        _, peak = tracemalloc.get_traced_memory()
        return peak
    finally:
        tracemalloc.stop()


# Files of documents, sgml and ted-xml are read as a whole; those of csv and parquet begin with the
# names of columns, so that they cannot be repeated.
@pytest.mark.parametrize("text_format", ["plain", "tsv", "jsonl", "ted-tags", "tmx"])
def test_memory_does_not_grow_with_the_file(text_format):
    memory_of_short_file = peak_memory(text_format, times=300)
    memory_of_long_file = peak_memory(text_format, times=3000)

    assert memory_of_long_file < memory_of_short_file + 100_000


@given(text_format=st.sampled_from(FORMATS), data=st.data())
def test_a_damaged_file_is_read_as_pairs_or_gives_a_one_line_error(text_format, data):
    """Any other exception would show the user a traceback instead of the name of the file.

    `read_pairs` reads the files inputs/x.de and inputs/x.en, or inputs/both.
    """
    files = published_files(text_format)
    file_index = data.draw(st.integers(0, len(files) - 1))
    content = files[file_index]
    # Replace up to 20 bytes by up to 20 others.
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, min(start + 20, len(content))))
    replacement = data.draw(st.binary(max_size=20))
    files[file_index] = content[:start] + replacement + content[stop:]

    try:
        pairs = read_pairs(text_format, *files)
    except UserError as error:
        assert "inputs/" in str(error)
        assert "\n" not in str(error)
    else:
        for source, target in pairs:
            assert "\n" not in source
            assert "\n" not in target


@pytest.mark.parametrize(
    ("given_side", "synthetic_side", "expected"),
    [
        pytest.param("source", "target", [Pair("eins", ""), Pair("zwei", "")], id="source text"),
        pytest.param("target", "source", [Pair("", "eins"), Pair("", "zwei")], id="target text"),
    ],
)
def test_the_missing_side_of_a_monolingual_text_is_empty(given_side, synthetic_side, expected):
    """For back-translation, a text has one file; a system will translate it into the other side."""
    files = {given_side: File(path="inputs/x")}
    text = Text("x", "plain", **files)

    stream = io.BytesIO(b"eins\nzwei\n")

    pairs = read_text(text, [stream], languages=("de", "en"), counts=SetCounts(), documents=[])

    assert text.synthetic_side == synthetic_side
    assert list(pairs) == expected


TABLE_WITH_HEADER = b"id\tEnglish\t German \n1\tone\teins\n2\ttwo\tzwei\n"


def test_columns_chosen_by_their_names_have_a_header():
    pairs = read_pairs("tsv", TABLE_WITH_HEADER, columns=("German", "English"))

    assert pairs == [Pair("eins", "one"), Pair("zwei", "two")]


def test_columns_chosen_by_their_numbers_have_no_header():
    pairs = read_pairs("tsv", TABLE_WITH_HEADER, columns=(3, 2))

    assert pairs == [Pair(" German ", "English"), Pair("eins", "one"), Pair("zwei", "two")]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        pytest.param(
            b"English\tGerman\tGerman",
            "inputs/both:1: 2 columns are named 'German'. Use numbers.",
            id="two columns of that name",
        ),
        pytest.param(
            b"English\tFrench",
            "inputs/both:1: no column is named 'German'. Columns: 'English', 'F",
            id="no column of that name",
        ),
        pytest.param(
            b"",
            "inputs/both:1: no column is named 'German'. Columns: ''",
            id="empty header",
        ),
    ],
)
def test_a_name_that_is_not_the_name_of_one_column_is_refused(header, message):
    content = header + b"\none\teins\tx\n"

    assert read_error("tsv", content, columns=("German", "English")).startswith(message)
