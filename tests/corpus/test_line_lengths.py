"""Where files cease to be parallel is found by the lengths of their lines."""

import pytest

from bleuprint.corpus.line_lengths import describe_parting
from bleuprint.corpus.phrasebook import sentences

GERMAN, ENGLISH = (list(sentences("train", language))[:3000] for language in ("de", "en"))


@pytest.fixture
def written(tmp_path):
    """Writes the lines of two sides, and returns the files."""

    def write(*sides):
        files = [tmp_path / f"mine.{name}" for name in ("de", "en")]
        for path, lines in zip(files, sides, strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return files

    return write


def test_compressed_files_are_not_read(tmp_path):
    assert describe_parting([tmp_path / "a.gz"] * 2) == ""


def test_lines_of_one_length_do_not_part(written):
    assert describe_parting(written(["ja"] * 300, ["yes"] * 299)) == ""


@pytest.mark.parametrize("place", [5, 301, 1700])
def test_a_lost_line_is_found(written, place):
    place_found = describe_parting(written(GERMAN, ENGLISH[: place - 1] + ENGLISH[place:]))
    start = "; by their lengths, they part at about line "
    assert place_found.startswith(start)
    assert abs(int(place_found.removeprefix(start).replace(",", "")) - place) <= 3


def test_of_several_lost_lines_the_first_range_is_named(written):
    more = list(ENGLISH)
    for place in (2000, 1200, 500):
        more.insert(place, "")
    text = describe_parting(written(GERMAN, more))
    first, last = text.removeprefix("; by their lengths, they part first between lines ").split(
        " and "
    )
    assert int(first.replace(",", "")) <= 601
    assert int(last.replace(",", "")) > 501
