import pytest

from bleuprint.errors import UserError
from bleuprint.pairs import Pair, PairWriter, TextFolder, count_lines, read_lines, read_pairs
from corpora import PAIRS, TORTURE, write_set


@pytest.mark.parametrize("character", TORTURE, ids=lambda c: f"U+{ord(c):04X}")
def test_a_line_ends_at_newline_only(tmp_path, character):
    pairs = [Pair(f"eins{character}zwei", "one two"), Pair(character, f"{character}three")]
    write_set(TextFolder(tmp_path, "de", "en"), "train", pairs)
    folder = TextFolder(tmp_path, "de", "en")
    assert list(folder.pairs("train")) == pairs
    assert folder.count("train") == 2


def test_written_pairs_are_read_back(tmp_path):
    folder = TextFolder(tmp_path, "de", "en")
    with folder.writer("train") as writer:
        for pair in [*PAIRS, Pair("", "")]:
            writer.write(pair)
    assert list(folder.pairs("train")) == [*PAIRS, Pair("", "")]


def test_a_newline_inside_a_sentence_is_never_written(tmp_path):
    with PairWriter(tmp_path / "a", tmp_path / "b") as writer, pytest.raises(AssertionError):
        writer.write(Pair("eins\nzwei", "one"))


def test_a_missing_last_newline_makes_no_difference(tmp_path):
    (tmp_path / "a").write_bytes(b"eins\nzwei")
    (tmp_path / "b").write_bytes(b"one\ntwo\n")
    assert list(read_pairs(tmp_path / "a", tmp_path / "b")) == [("eins", "one"), ("zwei", "two")]


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        (b"a\nb\nc\n", b"a\n", (3, 1)),
        (b"a\n", b"a\nb\nc", (1, 3)),
        (b"", b"a\n", (0, 1)),
        (b"a\nb\n", b"a\n\n\n", (2, 3)),
    ],
)
def test_unequal_sides_are_named_with_their_counts(tmp_path, source, target, counts):
    first, second = tmp_path / "x.de", tmp_path / "x.en"
    first.write_bytes(source)
    second.write_bytes(target)
    with pytest.raises(UserError) as error:
        list(read_pairs(first, second))
    wanted = f"{first} has {counts[0]} lines and {second} has {counts[1]}: not parallel"
    assert str(error.value) == wanted


def test_an_undecodable_byte_is_named_with_file_and_line(tmp_path):
    path = tmp_path / "x.de"
    path.write_bytes(b"gut\nstra\xdfe\n")
    with pytest.raises(UserError, match=r"x\.de:2: byte 5 of the line is 0xdf: not UTF-8"):
        list(read_lines(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"x\.de: no such file"):
        list(read_lines(tmp_path / "x.de"))


def test_names_of_sets_are_in_order(tmp_path):
    folder = TextFolder(tmp_path, "de", "en")
    for name in ("test.b", "valid", "test.a.1", "train"):
        write_set(folder, name, PAIRS)
    (tmp_path / "notes.txt").write_text("x")
    assert folder.names() == ["train", "valid", "test.a.1", "test.b"]


def test_lines_are_counted_as_they_are_ended(tmp_path):
    (tmp_path / "a").write_bytes(b"a\r\n\x0c\nb")
    assert count_lines(tmp_path / "a") == 2
