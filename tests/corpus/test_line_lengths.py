"""If two files have different numbers of lines, line lengths tell where they part."""

import pytest

from bleuprint.corpus.line_lengths import describe_parting
from corpora import lines_to_text, phrasebook_sentences

GERMAN_SENTENCES = phrasebook_sentences("de", 3000)
ENGLISH_SENTENCES = phrasebook_sentences("en", 3000)


def write_sides(folder, german_lines, english_lines):
    """Write two files of lines, and return their paths."""
    german_path = folder / "mine.de"
    english_path = folder / "mine.en"
    german_path.write_text(lines_to_text(german_lines), encoding="utf-8")
    english_path.write_text(lines_to_text(english_lines), encoding="utf-8")
    return [german_path, english_path]


def test_compressed_files_are_not_read(tmp_path):
    missing_file = tmp_path / "a.gz"

    assert describe_parting([missing_file, missing_file]) == ""


def test_lines_of_equal_length_do_not_tell_where_files_part(tmp_path):
    paths = write_sides(tmp_path, ["ja"] * 300, ["yes"] * 299)

    assert describe_parting(paths) == ""


@pytest.mark.parametrize("lost_line", [5, 301, 1700])
def test_the_line_that_one_file_lacks_is_named(tmp_path, lost_line):
    """The files have thousands of lines, so that a user needs the place of the first fault.

    All other lines translate each other: where their lengths no longer fit, a line is missing. The
    named line may be three lines off.
    """
    english_lines = list(ENGLISH_SENTENCES)
    del english_lines[lost_line - 1]
    paths = write_sides(tmp_path, GERMAN_SENTENCES, english_lines)

    description = describe_parting(paths)

    start = ". By the lengths of their lines, they part at about line "
    assert description.startswith(start)
    named_line = int(description.removeprefix(start).replace(",", ""))
    assert abs(named_line - lost_line) <= 3


def test_if_several_lines_are_inserted_the_range_of_the_first_is_named(tmp_path):
    """Three empty lines are inserted into one of two files that translate each other.

    The user repairs the first place, and runs the command again for the next one.
    """
    english_lines = list(ENGLISH_SENTENCES)
    # From the end, so that an inserted line does not move the other places.
    for index in (2000, 1200, 500):
        english_lines.insert(index, "")
    paths = write_sides(tmp_path, GERMAN_SENTENCES, english_lines)

    description = describe_parting(paths)

    start = ". By the lengths of their lines, they part first between lines "
    first, last = description.removeprefix(start).split(" and ")
    # Line 501, the first inserted one, is in the range or at most 100 lines before it.
    assert int(first.replace(",", "")) <= 601
    assert int(last.replace(",", "")) > 501
