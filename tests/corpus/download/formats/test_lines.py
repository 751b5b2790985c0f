from itertools import zip_longest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_formats import fault, read

from bleuprint.corpus.steps.filter_stats import SetCounts

# Any sentence a line can hold; NULs have a test of their own, since many of them are UTF-16.
SENTENCES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"))
FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\t"))


def as_published(content):
    """The lines of a file, slowly."""
    lines = content.removeprefix("\ufeff".encode()).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
        ended = len(lines)
    else:
        ended = len(lines) - 1
    return [
        (line.removesuffix(b"\r") if number < ended else line).decode()
        for number, line in enumerate(lines)
    ]


@given(
    pairs=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_any_two_files_of_utf_8_are_read_line_by_line(pairs, end):
    files = [b"".join(text.encode() + end for text in side) for side in zip(*pairs, strict=True)]
    found = read("plain", *files)
    assert found == list(zip(*map(as_published, files), strict=True))
    if not any(text.startswith("\ufeff") or text.endswith("\r") for pair in pairs for text in pair):
        assert found == pairs


@given(rows=st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1), last=st.booleans())
def test_any_columns_of_utf_8_are_read(rows, last):
    file = "\n".join("\t".join(row) for row in rows).encode() + (b"\n" if last else b"")
    wanted = [tuple(line.split("\t")) for line in as_published(file)]
    assume(b"\n" in file or b"\r" not in file)
    if wanted and len(wanted[-1]) == 3:
        assert read("tsv", file, columns=(3, 1)) == [(row[2], row[0]) for row in wanted]


def test_only_a_return_before_a_line_break_goes_and_only_one_byte_order_mark():
    mark = "\ufeff".encode()
    files = mark * 2 + b"a\rb\r\r\n" + mark + b"c\r\n\r", b"x\ny\nz\n"
    assert read("plain", *files) == [("\ufeffa\rb\r", "x"), ("\ufeffc", "y"), ("\r", "z")]


def test_lines_of_old_macs_are_no_single_line():
    message = fault("tsv", b"Guten Tag.\tGood day.\rDanke\tThanks\r", columns=(1, 2))
    assert message == (
        r"inputs/both: its lines end in \r alone, as on old Macs: tr '\r' '\n' < OLD > NEW"
    )
    for content in (b"a\rb\n", b"a\nb\rc", b"a"):
        assert len(read("plain", content, content)) == content.count(b"\n") + (content[-1] != 10)


@pytest.mark.parametrize("side", [0, 1])
def test_a_byte_that_is_not_utf_8_is_named_far_down_in_a_file(side):
    files = [b"x\n" * 3001, b"x\n" * 3001]
    files[side] = b"x\n" * 3000 + b"a\x80\n"
    name = ("inputs/x.de", "inputs/x.en")[side]
    assert fault("plain", *files).startswith(f"{name}:3001: byte 2 of the line is 0x80")


@pytest.mark.parametrize(
    ("numbers", "lines"),
    [
        ((3, 1), "3 lines"),
        ((1, 3), "1 line"),
        ((0, 2), "0 lines"),
        ((2, 0), "2 lines"),
        ((2, 3), "2 lines"),
        ((1001, 7), "1,001 lines"),
    ],
)
def test_files_of_different_length_are_named_with_their_counts(numbers, lines):
    message = fault("plain", b"a\n" * numbers[0], b"b\n" * numbers[1])
    assert message == (f"inputs/x.de has {lines} and inputs/x.en has {numbers[1]}: not parallel")


@pytest.mark.parametrize(
    ("content", "number", "found"),
    [(b"a\tb\tc\na\tb\n", 2, 2), (b"a\tb\tc\n\n", 2, 1), (b"a b c\n", 1, 1)],
)
def test_a_row_that_lacks_a_column_is_named(content, number, found):
    message = fault("tsv", content, columns=(1, 3))
    assert message == (
        f"inputs/both:{number}: columns 1 and 3 are needed, and the line has {found}"
    )


def test_quotes_are_text_and_further_columns_go_by():
    assert read("tsv", b'"a\tb"\t"c"\t\td\r\n', columns=(2, 1)) == [('b"', '"a')]


# Talks as in train.tags.de-en: described in both languages, on lines of the same kind.
TALKS = (
    "<url>http://x/1</url>\n<keywords>talks, Meer</keywords>\n<speaker>A. B.</speaker>\n"
    "<talkid>1</talkid>\n<title>A. B.: {}</title>\n<description>TED Talk: {}</description>\n"
    " {}\n{}\n\n"
    '<reviewer href="http://x/p">C</reviewer>\n<translator href="http://x/q">D</translator>\n'
    '<doc docid="2" genre="lectures">\n<url>http://x/2</url>\n<title></title>\n'
    "<description> </description>\n{} < {}\n</doc>\n"
)


def of_shell_script(text):
    """What fairseq's pipeline of grep and sed makes of a file, slowly."""
    lines = text.removesuffix("\n").split("\n")
    for word in (
        "<url>",
        "<talkid>",
        "<keywords>",
        "<speaker>",
        "<reviewer",
        "<translator",
        "<doc",
    ):
        lines = [line for line in lines if word not in line]
    lines = [line for line in lines if "</doc>" not in line]
    for tag in ("<title>", "</title>", "<description>", "</description>"):
        lines = [line.replace(tag, "") for line in lines]
    return lines


def test_talks_are_read_as_by_fairseqs_script():
    source = TALKS.format("Das Meer", "wie es <title> lebt", "Danke.", "Es & ich", "3", "4")
    target = TALKS.format("The sea", "how it lives", "Thanks. ", "Me\tand it", "3", "4")
    counts = SetCounts()
    found = read("ted-tags", source.encode(), target.encode(), counts=counts)
    assert found == list(zip_longest(of_shell_script(source), of_shell_script(target)))
    assert found[:3] == [
        ("A. B.: Das Meer", "A. B.: The sea"),
        ("TED Talk: wie es  lebt", "TED Talk: how it lives"),
        (" Danke.", " Thanks. "),
    ]
    assert ("", "") in found
    assert counts.dropped == {"metadata": 9}


@pytest.mark.parametrize(
    ("source", "target", "kinds"),
    [
        ("<url>x</url>", "Danke.", ("<url>", "a sentence")),
        ("Danke.", "<reviewer href='x'>A</reviewer>", ("a sentence", "<reviewer>")),
        ("<url>x</url>", "<talkid>1</talkid>", ("<url>", "<talkid>")),
        ("<title>x</title>", "<description>y</description>", ("<title>", "<description>")),
        ("<title>x</title>", "y", ("<title>", "a sentence")),
    ],
)
def test_lines_of_different_kinds_are_not_parallel(source, target, kinds):
    message = fault("ted-tags", f"a\n{source}\n".encode(), f"b\n{target}\n".encode())
    assert message == f"inputs/x.de:2: {kinds[0]}, but inputs/x.en:2: {kinds[1]}: not parallel"
