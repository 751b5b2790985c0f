"""Formats with a sentence or a pair per line: plain, tsv and ted-tags."""

from itertools import zip_longest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bleuprint.corpus.steps.filter_stats import SetCounts
from corpora import sources_of, targets_of
from parallel_formats import read_error, read_pairs

# Any sentence that a line can contain. Null bytes have a test of their own, because a file with
# many of them is taken for UTF-16.
SENTENCES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"))
FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\t"))


def lines_of(content):
    """Return the lines of a file by a simple algorithm.

    A newline ends a line; a carriage return before it is removed, and a byte order mark at the
    start of the file. The last line may lack a newline, and then keeps its carriage return.
    """
    lines = content.removeprefix("\ufeff".encode()).split(b"\n")
    last_line = lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if last_line != b"":
        lines.append(last_line)
    return [line.decode() for line in lines]


def join_lines(lines, line_end):
    """Return a file in which each line has this end."""
    return "".join(line + line_end for line in lines).encode()


@given(
    pairs=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_two_files_in_utf_8_are_read_line_by_line(pairs, line_end):
    """The expected lines come from `lines_of`, a simple implementation that splits at newlines.

    It also removes a byte order mark at the start of the file, and a carriage return before each
    newline.
    """
    source_file = join_lines(sources_of(pairs), line_end)
    target_file = join_lines(targets_of(pairs), line_end)

    pairs_read = read_pairs("plain", source_file, target_file)

    expected_pairs = list(zip(lines_of(source_file), lines_of(target_file), strict=True))
    assert pairs_read == expected_pairs


@given(
    pairs=st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
def test_sentences_without_byte_order_mark_and_carriage_return_are_read_unchanged(pairs, line_end):
    """Whatever other characters a sentence contains, it must be the same after reading."""
    # Skip sentences with characters that the reader removes, since they belong to the file.
    for source, target in pairs:
        assume(not source.startswith("\ufeff"))
        assume(not target.startswith("\ufeff"))
        assume(not source.endswith("\r"))
        assume(not target.endswith("\r"))
    source_file = join_lines(sources_of(pairs), line_end)
    target_file = join_lines(targets_of(pairs), line_end)

    pairs_read = read_pairs("plain", source_file, target_file)

    assert pairs_read == pairs


@given(rows=st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1), has_last_newline=st.booleans())
def test_any_table_in_utf_8_is_read_by_its_columns(rows, has_last_newline):
    """The source is in column 3, the target in column 1.

    The expected lines come from `lines_of`, a simple implementation that splits at newlines.
    """
    lines = ["\t".join(row) for row in rows]
    content = "\n".join(lines).encode()
    if has_last_newline:
        content += b"\n"
    # Skip files with carriage returns only, which are refused as files of an old Mac.
    assume(b"\n" in content or b"\r" not in content)

    pairs = read_pairs("tsv", content, columns=(3, 1))

    expected_pairs = []
    for line in lines_of(content):
        first, _, third = line.split("\t")
        expected_pairs.append((third, first))
    assert pairs == expected_pairs


def test_one_byte_order_mark_per_file_and_one_carriage_return_per_line_are_removed():
    """A mark is removed at the start of the file only, a carriage return before a newline only."""
    mark = "\ufeff".encode()
    first_line = mark + mark + b"a\rb\r\r\n"
    second_line = mark + b"c\r\n"
    last_line_without_newline = b"\r"
    source_file = first_line + second_line + last_line_without_newline
    target_file = b"x\ny\nz\n"

    pairs = read_pairs("plain", source_file, target_file)

    assert pairs == [("\ufeffa\rb\r", "x"), ("\ufeffc", "y"), ("\r", "z")]


def test_a_file_with_the_line_ends_of_old_macs_is_an_error_with_a_command():
    """Read with newlines only, the whole file would be a single line."""
    message = read_error("tsv", b"Guten Tag.\tGood day.\rDanke\tThanks\r", columns=(1, 2))

    assert message == (
        r"inputs/both: its lines end in \r alone, as on old Macs. "
        r"In a corpus, set line_ends: cr. Elsewhere, convert the file: tr '\r' '\n' < OLD > NEW"
    )


@pytest.mark.parametrize(("content", "line_count"), [(b"a\rb\n", 1), (b"a\nb\rc", 2), (b"a", 1)])
def test_a_file_with_a_newline_or_without_carriage_return_is_not_from_an_old_mac(
    content, line_count
):
    assert len(read_pairs("plain", content, content)) == line_count


@pytest.mark.parametrize(("side", "name"), [(0, "inputs/x.de"), (1, "inputs/x.en")])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line(side, name):
    """Line 3001 of one of the two files contains the byte 0x80."""
    files = [b"x\n" * 3001, b"x\n" * 3001]
    files[side] = b"x\n" * 3000 + b"a\x80\n"

    message = read_error("plain", *files)

    assert message.startswith(f"{name}:3001: byte 2 of the line is 0x80")


@pytest.mark.parametrize(
    ("source_lines", "target_lines", "counts"),
    [
        pytest.param(3, 1, "inputs/x.de has 3 lines, but inputs/x.en has 1", id="target too short"),
        pytest.param(1, 3, "inputs/x.de has 1 line, but inputs/x.en has 3", id="source too short"),
        pytest.param(0, 2, "inputs/x.de has 0 lines, but inputs/x.en has 2", id="empty source"),
        pytest.param(2, 0, "inputs/x.de has 2 lines, but inputs/x.en has 0", id="empty target"),
        pytest.param(2, 3, "inputs/x.de has 2 lines, but inputs/x.en has 3", id="one line missing"),
        pytest.param(
            1001,
            7,
            "inputs/x.de has 1,001 lines, but inputs/x.en has 7",
            id="over a thousand lines",
        ),
    ],
)
def test_files_with_different_numbers_of_lines_are_an_error_with_both_numbers(
    source_lines, target_lines, counts
):
    """Pairing such files line by line would give wrong translations from the missing line on."""
    message = read_error("plain", b"a\n" * source_lines, b"b\n" * target_lines)

    assert message == f"{counts}, so they are not parallel"


@pytest.mark.parametrize(
    ("content", "line", "columns"),
    [
        pytest.param(b"a\tb\tc\na\tb\n", 2, "2 columns", id="second line with two columns"),
        pytest.param(b"a\tb\tc\n\n", 2, "1 column", id="empty second line"),
        pytest.param(b"a b c\n", 1, "1 column", id="spaces in place of tabs"),
    ],
)
def test_a_line_without_a_requested_column_is_an_error(content, line, columns):
    """The settings say that the source is in column 1 and the target in column 3."""
    message = read_error("tsv", content, columns=(1, 3))

    assert message == (
        f"inputs/both:{line}: the line has {columns}, but columns 1 and 3 are needed"
    )


def test_quotation_marks_in_a_table_are_text_and_other_columns_are_ignored():
    """CSV readers would take the quotation marks for the limits of fields."""
    assert read_pairs("tsv", b'"a\tb"\t"c"\t\td\r\n', columns=(2, 1)) == [('b"', '"a')]


# Two talks as in train.tags.de-en: both languages have metadata on the same lines.
TALKS = (
    "<url>http://x/1</url>\n<keywords>talks, Meer</keywords>\n<speaker>A. B.</speaker>\n"
    "<talkid>1</talkid>\n<title>A. B.: {}</title>\n<description>TED Talk: {}</description>\n"
    " {}\n{}\n\n"
    '<reviewer href="http://x/p">C</reviewer>\n<translator href="http://x/q">D</translator>\n'
    '<doc docid="2" genre="lectures">\n<url>http://x/2</url>\n<title></title>\n'
    "<description> </description>\n{} < {}\n</doc>\n"
)
METADATA_TAGS = [
    "<url>",
    "<talkid>",
    "<keywords>",
    "<speaker>",
    "<reviewer",
    "<translator",
    "<doc",
    "</doc>",
]


def lines_of_fairseq(text):
    """Return what the grep and sed commands of fairseq's prepare-iwslt14.sh make of a file."""
    lines = []
    for line in text.removesuffix("\n").split("\n"):
        if any(tag in line for tag in METADATA_TAGS):
            continue
        for tag in ("<title>", "</title>", "<description>", "</description>"):
            line = line.replace(tag, "")
        lines.append(line)
    return lines


GERMAN_TALKS = TALKS.format("Das Meer", "wie es <title> lebt", "Danke.", "Es & ich", "3", "4")
ENGLISH_TALKS = TALKS.format("The sea", "how it lives", "Thanks. ", "Me\tand it", "3", "4")


def test_talks_are_read_as_by_the_script_of_fairseq():
    pairs = read_pairs("ted-tags", GERMAN_TALKS.encode(), ENGLISH_TALKS.encode())

    expected = zip_longest(lines_of_fairseq(GERMAN_TALKS), lines_of_fairseq(ENGLISH_TALKS))
    assert pairs == list(expected)


def test_titles_and_descriptions_of_talks_are_sentences_and_other_metadata_is_dropped():
    """In the format ted-tags, tags such as <url> mark the lines of metadata about a talk.

    GERMAN_TALKS and ENGLISH_TALKS contain the titles and descriptions of two talks, and nine
    lines of other metadata.
    """
    counts = SetCounts()

    pairs = read_pairs("ted-tags", GERMAN_TALKS.encode(), ENGLISH_TALKS.encode(), counts=counts)

    assert pairs[:3] == [
        ("A. B.: Das Meer", "A. B.: The sea"),
        ("TED Talk: wie es  lebt", "TED Talk: how it lives"),
        (" Danke.", " Thanks. "),
    ]
    # The title of the second talk is empty.
    assert ("", "") in pairs
    assert counts.dropped == {"metadata": 9}


@pytest.mark.parametrize(
    ("source", "target", "source_kind", "target_kind"),
    [
        pytest.param("<url>x</url>", "Danke.", "<url>", "a sentence", id="URL and sentence"),
        pytest.param(
            "Danke.",
            "<reviewer href='x'>A</reviewer>",
            "a sentence",
            "<reviewer>",
            id="sentence and reviewer",
        ),
        pytest.param(
            "<url>x</url>", "<talkid>1</talkid>", "<url>", "<talkid>", id="URL and talk id"
        ),
        pytest.param(
            "<title>x</title>",
            "<description>y</description>",
            "<title>",
            "<description>",
            id="title and description",
        ),
        pytest.param("<title>x</title>", "y", "<title>", "a sentence", id="title and sentence"),
    ],
)
def test_a_line_with_different_tags_on_both_sides_is_an_error(
    source, target, source_kind, target_kind
):
    """In the format ted-tags, both files must have the same metadata in the same lines."""
    message = read_error("ted-tags", f"a\n{source}\n".encode(), f"b\n{target}\n".encode())

    assert message == (
        f"inputs/x.de:2: {source_kind}, but inputs/x.en:2: {target_kind}, so the "
        "files are not parallel"
    )
