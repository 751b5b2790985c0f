"""Parallel text is read and written line by line; only a newline ends a line."""

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.text import parallel
from bleuprint.text.parallel import (
    Pair,
    PairWriter,
    TextFolder,
    count_lines,
    read_lines,
    read_pairs,
)
from corpora import PAIRS, TORTURE, write_set


@pytest.mark.parametrize("character", TORTURE, ids=ascii)
def test_no_other_character_than_a_newline_ends_a_line(tmp_path, character):
    """The characters are those at which other programs end a line, and invisible ones."""
    pairs = [Pair(f"eins{character}zwei", "one two"), Pair(character, f"{character}three")]
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", pairs)

    assert list(folder.pairs("train")) == pairs
    assert folder.count("train") == 2


def test_writing_a_sentence_with_a_newline_fails(tmp_path):
    """It would become two lines, and shift all following sentences against their translations."""
    with PairWriter(tmp_path / "a", tmp_path / "b") as writer, pytest.raises(AssertionError):
        writer.write(Pair("eins\nzwei", "one"))


def test_a_last_line_without_newline_is_read_like_the_others(tmp_path):
    (tmp_path / "a").write_bytes(b"eins\nzwei")
    (tmp_path / "b").write_bytes(b"one\ntwo\n")

    pairs = list(read_pairs(tmp_path / "a", tmp_path / "b"))

    assert pairs == [("eins", "one"), ("zwei", "two")]


def test_a_byte_that_is_not_utf_8_is_named_with_file_and_line(tmp_path):
    path = tmp_path / "x.de"
    path.write_bytes(b"gut\nstra\xdfe\n")

    with pytest.raises(UserError, match=r"x\.de:2: byte 5 of the line is 0xdf: not UTF-8"):
        list(read_lines(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"x\.de: no such file"):
        list(read_lines(tmp_path / "x.de"))


def test_the_sets_of_a_folder_are_train_valid_and_the_test_sets_by_name(tmp_path):
    """Files are named SET.LANGUAGE; other files in the folder are ignored."""
    folder = TextFolder(tmp_path, "de", "en")
    for name in ("test.b", "valid", "test.a.1", "train"):
        write_set(folder, name, PAIRS)
    (tmp_path / "notes.txt").write_text("not a set")

    assert folder.set_names() == ["train", "valid", "test.a.1", "test.b"]


@pytest.mark.parametrize(
    ("content", "line_count"),
    [
        pytest.param(b"a\r\n\x0c\nb", 3, id="last line without newline"),
        pytest.param(b"a\nb\n", 2, id="last line with newline"),
        pytest.param(b"\n", 1, id="empty line"),
        pytest.param(b"", 0, id="empty file"),
    ],
)
def test_as_many_lines_are_counted_as_are_read(tmp_path, content, line_count):
    r"""Only a newline ends a line: \r and \x0c belong to the line."""
    path = tmp_path / "a"
    path.write_bytes(content)

    assert count_lines(path) == line_count
    assert len(list(read_lines(path))) == line_count


@pytest.mark.parametrize("block_pairs", [1, 2, 3, 7, 1000])
def test_two_ranges_that_meet_contain_each_pair_once_and_numbered_over_the_text(
    tmp_path, monkeypatch, block_pairs
):
    """A text is read in ranges by several processes, and each range in blocks of pairs.

    The text is divided into two ranges at each of its pairs; both together must be the whole text.
    """
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", block_pairs)
    expected_pairs = []
    for number, character in enumerate(TORTURE):
        expected_pairs.append(Pair(f"{number}{character}\r", f"{character}{number}"))
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", expected_pairs)

    for boundary in range(len(expected_pairs) + 1):
        pairs = []
        numbered_pairs = []
        first_range = folder.blocks("train", 0, boundary)
        second_range = folder.blocks("train", boundary)
        for block in [*first_range, *second_range]:
            assert len(block.pairs()) <= block_pairs
            pairs += block.pairs()
            numbered_pairs += block.numbered_pairs()
        assert pairs == expected_pairs
        assert [number for number, _ in numbered_pairs] == list(range(1, len(pairs) + 1))


@pytest.mark.parametrize(
    ("source", "target", "source_lines", "target_lines"),
    [
        pytest.param(b"a\n" * 5, b"a\n" * 4, 5, 4, id="target is shorter"),
        pytest.param(b"a\n" * 3 + b"a", b"a\n" * 5, 4, 5, id="source is shorter"),
        pytest.param(b"", b"a", 0, 1, id="source is empty"),
    ],
)
@pytest.mark.parametrize(
    "ranges", [[(0, None)], [(0, 2), (2, None)]], ids=["whole text", "two ranges"]
)
def test_files_with_different_numbers_of_lines_are_refused(
    tmp_path, monkeypatch, source, target, source_lines, target_lines, ranges
):
    """Several processes read ranges of a text; the one with the last range notices the difference.

    Blocks have two pairs here, so that the shorter file ends within a block or between two.
    """
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 2)
    folder = TextFolder(tmp_path, "de", "en")
    source_path, target_path = folder.files("train")
    source_path.write_bytes(source)
    target_path.write_bytes(target)

    with pytest.raises(UserError) as error:
        for start, stop in ranges:
            list(folder.blocks("train", start, stop))

    assert str(error.value) == (
        f"{source_path} has {source_lines} lines and {target_path} has {target_lines}: not "
        "parallel. If the file is yours, correct it. Otherwise run: make reproduce"
    )


@pytest.mark.parametrize("start", [0, 1], ids=["block from line 1", "block from line 2"])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line_in_the_file_not_in_the_block(
    tmp_path, start
):
    """A text is read in blocks, of which the second one begins later in the file."""
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", [Pair("a", "one"), Pair("b", "two"), Pair("c", "it is three")])
    _, english_path = folder.files("train")
    english_path.write_bytes(english_path.read_bytes().replace(b"three", b"thr\xe9e"))

    block = next(iter(folder.blocks("train", start)))

    with pytest.raises(UserError, match=r"train\.en:3: byte 10 of the line is 0xe9: not UTF-8"):
        block.pairs()
