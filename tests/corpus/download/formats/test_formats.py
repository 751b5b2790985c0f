import io
import re
import tracemalloc
from html import escape
from itertools import chain, repeat
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleuprint.config.corpus_files import TWO_SIDED, File, Format, Text
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

FORMATS = list(get_args(Format))
PARALLEL = [name for name in FORMATS if name not in TWO_SIDED and name != "documents"]
BY_LINES = ["plain", "documents", "tsv", "ted-tags"]
MARKED_UP = ["sgml", "ted-xml", "tmx"]
# Read by expat.
XML = ["tmx"]

PAIRS = [
    Pair("Die Katze schläft.", "The cat lies by the stove."),
    Pair("Wann fährt der nächste Zug?", "When does the next train leave?"),
    Pair("Äpfel & Birnen", "Apples & pears"),
    Pair("3 < 4, sagt er.", "3 < 4, he says."),
]
# What XML can say as it is.
CHARACTERS = st.characters(
    min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\x7f\ufffe\uffff"
)
XML_TEXTS = st.text(CHARACTERS | st.sampled_from("\n\t&<>]\"' "))
# Where Python ends lines and this project does not.
LINE_ENDS_ELSEWHERE = ["\r", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"]


def text_of(name, columns=None):
    files = {"source": File(path="inputs/x.de"), "target": File(path="inputs/x.en")}
    if name in TWO_SIDED:
        files = {"both": File(path="inputs/both")}
    return Text("x", name, **files, columns=(columns or (1, 2)) if name == "tsv" else None)


def read(name, *contents, counts=None, columns=None):
    text = text_of(name, columns)
    counts, streams = counts or SetCounts(), [*map(io.BytesIO, contents)]
    return list(read_text(text, streams, ("de", "en"), counts, []))


def fault(name, *contents, columns=None):
    with pytest.raises(UserError) as error:
        read(name, *contents, columns=columns)
    assert "\n" not in str(error.value)
    return str(error.value)


def published(name, pairs=PAIRS):
    """The files of a text in a format."""
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    return [file.encode() for file in _WRITERS[name](*sides)]


def sentences(name, pairs=PAIRS):
    """The pairs that must be read from the published files."""
    return [Pair("Ofen", "Ofen"), *pairs] if name == "ted-tags" else pairs


def last_file(name):
    return "inputs/both" if name in TWO_SIDED else "inputs/x.en"


def _plain(source, target):
    return ["".join(f"{line}\n" for line in side) for side in (source, target)]


def _tsv(source, target):
    return ["".join(f"{a}\t{b}\n" for a, b in zip(source, target, strict=True))]


def _ted_tags(source, target):
    head = "<url>http://x</url>\n<talkid>7</talkid>\n<title>Ofen</title>\n"
    return [head + side for side in _plain(source, target)]


def _docs(side):
    segs = [f'<seg id="{number}"> {text} </seg>\n' for number, text in enumerate(side, 1)]
    docs = zip(("a.1", "b.2"), (segs[:2], segs[2:]), strict=True)
    return "".join(f'<doc docid="{id}">\n{"".join(segs)}</doc>\n' for id, segs in docs)


def _sgml(source, target):
    return [
        f'<srcset setid="s" srclang="any">\n{_docs(source)}</srcset>\n',
        f'<refset setid="s" srclang="any" trglang="en">\n{_docs(target)}</refset>\n',
    ]


def _ted_xml(source, target):
    sides = [[escape(text) for text in side] for side in (source, target)]
    return [f"<?xml version='1.0'?>\n<mteval>\n{set}</mteval>\n" for set in _sgml(*sides)]


def _tmx(source, target):
    units = "".join(
        f'<tu>\n<tuv xml:lang="de"><seg>{escape(a)}</seg></tuv>\n'
        f'<tuv xml:lang="en"><seg>{escape(b)}</seg></tuv>\n</tu>\n'
        for a, b in zip(source, target, strict=True)
    )
    return [
        '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
        f'<header srclang="de"/>\n<body>\n{units}</body>\n</tmx>\n'
    ]


_WRITERS = {
    "plain": _plain,
    "documents": _plain,
    "tsv": _tsv,
    "ted-tags": _ted_tags,
    "sgml": _sgml,
    "ted-xml": _ted_xml,
    "tmx": _tmx,
}


@pytest.mark.parametrize("name", FORMATS)
def test_pairs_are_read_back(name):
    counts = SetCounts()
    assert read(name, *published(name), counts=counts) == sentences(name)
    assert counts.dropped == ({"metadata": 2} if name == "ted-tags" else {})


@pytest.mark.parametrize("name", FORMATS)
def test_byte_order_marks_and_carriage_returns_at_line_ends_are_taken_off(name):
    files = [b"\xef\xbb\xbf" + file.replace(b"\n", b"\r\n") for file in published(name)]
    assert read(name, *files) == sentences(name)


@pytest.mark.parametrize("name", FORMATS)
def test_files_without_a_sentence_are_an_error(name):
    files = [file.replace(b"<title>Ofen</title>\n", b"") for file in published(name, [])]
    message = fault(name, *files)
    assert last_file(name) in message
    assert "no pairs" in message


@pytest.mark.parametrize("name", MARKED_UP)
def test_a_file_that_is_cut_short_is_an_error_wherever_it_is_cut(name):
    *first, last = published(name)
    last = last.rstrip(b"\n").removesuffix(b"\n</mteval>")  # after it, no sentence is missing
    for length in range(len(last)):
        assert last_file(name) in fault(name, *first, last[:length])
    assert read(name, *first, last) == sentences(name)


@pytest.mark.parametrize("name", PARALLEL)
def test_sides_of_different_length_are_an_error_that_names_both(name):
    files, fewer = published(name), published(name, PAIRS[:-1])
    for sides in ((files[0], fewer[1]), (fewer[0], files[1])):
        message = fault(name, *sides)
        assert "inputs/x.de" in message
        assert "inputs/x.en" in message
        assert "not parallel" in message


@pytest.mark.parametrize("name", FORMATS)
def test_latin_1_is_an_error_at_its_line(name):
    file = published(name)[0]
    line = file[: file.index("schläft".encode())].count(b"\n") + 1
    message = fault(name, file.decode().encode("latin-1"), *published(name)[1:])
    if name in XML:
        assert message.startswith("inputs/both: not sound XML: ") and f": line {line}," in message
        return
    first = "inputs/both" if name in TWO_SIDED else "inputs/x.de"
    assert message.startswith(f"{first}:{line}: ")
    assert "is 0xe4: not UTF-8; as CP1252 it reads '" in message


@pytest.mark.parametrize("character", ["\0", *LINE_ENDS_ELSEWHERE], ids=ascii)
@pytest.mark.parametrize("name", FORMATS)
def test_control_characters_neither_break_lines_nor_get_lost_by_the_line(name, character):
    pairs = [Pair(f"eins{character}zwei", "one two"), *PAIRS[1:]]
    if name in XML and character < " " and character != "\r":
        assert "(invalid token)" in fault(name, *published(name, pairs))
        return
    found = read(name, *published(name, pairs))
    assert len(found) == len(sentences(name, pairs))
    folded = name not in BY_LINES and (character.isspace() if name != "tmx" else character == "\r")
    assert Pair("eins zwei" if folded else pairs[0].source, "one two") in found


@pytest.mark.parametrize("name", FORMATS)
def test_half_of_a_surrogate_pair_in_utf_8_is_an_error(name):
    *first, last = published(name)
    assert last_file(name) in fault(name, *first, last.replace(b"stove", b"\xed\xa0\x80"))


# The sentences of documents are aligned, and their lengths decide what is left out.
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "documents"])
def test_a_sentence_may_have_millions_of_characters(name):
    long = Pair("ä" * 2_000_000, "b c " * 500_000 + "d")
    pairs = [PAIRS[0], long, PAIRS[1]]
    assert read(name, *published(name, pairs)) == sentences(name, pairs)


class RepeatedFile(io.RawIOBase):
    """A file of which a part is repeated; it is never in memory as a whole."""

    def __init__(self, head, body, tail, times):
        self._parts = chain([head], repeat(body, times), [tail])
        self._rest = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def peak_memory(name, times):
    """Bytes of memory that reading takes at most, of files `times` as long as published ones."""
    streams = []
    for file in published(name):
        units = re.fullmatch(rb"(.*?)(<tu>.*</tu>\n)(.*)", file, re.DOTALL)
        head, body, tail = units.groups() if units else (b"", file, b"")
        streams.append(io.BufferedReader(RepeatedFile(head, body, tail, times)))
    text = text_of(name)
    tracemalloc.start()
    try:
        pairs = read_text(text, streams, ("de", "en"), SetCounts(), [])
        assert sum(1 for _ in pairs) == times * len(sentences(name))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["plain", "tsv", "ted-tags", "tmx"])
def test_memory_does_not_grow_with_the_file(name):
    """Documents, sgml and ted-xml are read as a whole."""
    few, many = peak_memory(name, 300), peak_memory(name, 3000)
    assert many < few + 100_000


@given(name=st.sampled_from(FORMATS), data=st.data())
def test_damage_anywhere_gives_pairs_of_lines_or_one_clear_error(name, data):
    files = published(name)
    which = data.draw(st.integers(0, len(files) - 1))
    file = files[which]
    start = data.draw(st.integers(0, len(file)))
    stop = data.draw(st.integers(start, min(start + 20, len(file))))
    files[which] = file[:start] + data.draw(st.binary(max_size=20)) + file[stop:]
    try:
        found = read(name, *files)
    except UserError as error:
        assert "inputs/" in str(error)
        assert "\n" not in str(error)
    else:
        assert not any("\n" in sentence for pair in found for sentence in pair)


@pytest.mark.parametrize(
    ("side", "made", "expected"),
    [
        ("source", "target", [Pair("eins", ""), Pair("zwei", "")]),
        ("target", "source", [Pair("", "eins"), Pair("", "zwei")]),
    ],
)
def test_the_side_that_a_system_translates_is_empty(side, made, expected):
    text = Text("x", "plain", **{side: File(path="inputs/x")})
    assert text.synthetic_side == made
    pairs = read_text(text, [io.BytesIO(b"eins\nzwei\n")], ("de", "en"), SetCounts(), [])
    assert list(pairs) == expected


def test_columns_by_their_names_are_those_of_the_first_line():
    content = b"id\tEnglish\t German \n1\tone\teins\n2\ttwo\tzwei\n"
    pairs = [Pair("eins", "one"), Pair("zwei", "two")]
    assert read("tsv", content, columns=("German", "English")) == pairs
    assert read("tsv", content, columns=(3, 2)) == [Pair(" German ", "English"), *pairs]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"English\tGerman\tGerman", "inputs/both:1: 2 columns are named 'German'; use numbers."),
        (b"English\tFrench", "inputs/both:1: no column is named 'German'. Columns: 'English', 'F"),
        (b"", "inputs/both:1: no column is named 'German'. Columns: ''"),
    ],
)
def test_a_name_that_is_not_one_column_is_refused(header, said):
    content = header + b"\none\teins\tx\n"
    assert fault("tsv", content, columns=("German", "English")).startswith(said)
