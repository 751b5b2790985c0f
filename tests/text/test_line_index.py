"""The index of a file's lines: where it says that lines begin, and that it is small."""

import hashlib

import pytest

from bleuprint.text import line_index
from bleuprint.text.line_index import index_lines


def write_lines(path, count):
    """Write lines of different lengths; each contains its number."""
    lines = [f"{number}{'x' * (number % 7)}\n" for number in range(count)]
    path.write_text("".join(lines))
    return lines


@pytest.mark.parametrize("bytes_per_read", [1, 7, 4096, 1 << 20])
def test_each_indexed_line_begins_at_its_offset(tmp_path, monkeypatch, bytes_per_read):
    """The file has 500 lines, and the index every tenth. Reads may end inside a line."""
    monkeypatch.setattr(line_index, "_FIRST_SPACING", 10)
    monkeypatch.setattr(line_index, "_BYTES_PER_READ", bytes_per_read)
    path = tmp_path / "text"
    lines = write_lines(path, 500)

    index = index_lines(path)

    content = path.read_bytes()
    for line in range(500):
        indexed_line, offset = index.nearest_before(line)
        assert indexed_line == line - line % 10
        assert content[offset:].startswith(lines[indexed_line].encode())
    assert index.lines == 500
    assert index.size == len(content)
    assert index.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
def test_the_index_of_a_long_file_has_few_entries_at_the_right_lines(tmp_path, monkeypatch, count):
    """At most 8 entries are kept, so that the spacing of one line doubles again and again."""
    monkeypatch.setattr(line_index, "_FIRST_SPACING", 1)
    monkeypatch.setattr(line_index, "_MAX_ENTRIES", 8)
    monkeypatch.setattr(line_index, "_BYTES_PER_READ", 5)
    path = tmp_path / "text"
    lines = write_lines(path, count)

    index = index_lines(path)

    content = path.read_bytes()
    assert len(index.offsets) <= 8
    for entry, offset in enumerate(index.offsets):
        first_lines = lines[: entry * index.spacing]
        assert content[:offset].decode() == "".join(first_lines)


def test_a_last_line_without_newline_counts(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo")

    assert index_lines(path).lines == 2


def test_a_line_behind_the_end_is_searched_from_the_last_entry(tmp_path):
    """A text of 3 pairs has no line 5000; the file has one entry, at its beginning."""
    path = tmp_path / "text"
    write_lines(path, 3)

    assert index_lines(path).nearest_before(5000) == (0, 0)


def test_a_file_that_was_written_again_does_not_fit_its_index(tmp_path):
    """The new file is as long as the old one."""
    path = tmp_path / "text"
    path.write_bytes(b"one\n")
    index = index_lines(path)
    assert index.describes(path)

    path.write_bytes(b"two\n")

    assert not index.describes(path)
