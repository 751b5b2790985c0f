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


@pytest.mark.parametrize("character", TORTURE, ids=lambda c: f"U+{ord(c):04X}")
def test_a_line_ends_at_newline_only(tmp_path, character):
    texts = [Pair(f"eins{character}zwei", "one two"), Pair(character, f"{character}three")]
    write_set(TextFolder(tmp_path, "de", "en"), "train", texts)
    folder = TextFolder(tmp_path, "de", "en")
    assert list(folder.pairs("train")) == texts
    assert folder.count("train") == 2


def test_a_newline_inside_a_sentence_is_never_written(tmp_path):
    with PairWriter(tmp_path / "a", tmp_path / "b") as writer, pytest.raises(AssertionError):
        writer.write(Pair("eins\nzwei", "one"))


def test_a_missing_last_newline_makes_no_difference(tmp_path):
    (tmp_path / "a").write_bytes(b"eins\nzwei")
    (tmp_path / "b").write_bytes(b"one\ntwo\n")
    assert list(read_pairs(tmp_path / "a", tmp_path / "b")) == [("eins", "one"), ("zwei", "two")]


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
    assert folder.set_names() == ["train", "valid", "test.a.1", "test.b"]


@pytest.mark.parametrize(
    ("data", "lines"), [(b"a\r\n\x0c\nb", 3), (b"a\nb\n", 2), (b"\n", 1), (b"", 0)]
)
def test_lines_are_counted_as_they_are_ended(tmp_path, data, lines):
    (tmp_path / "a").write_bytes(data)
    assert count_lines(tmp_path / "a") == lines == len(list(read_lines(tmp_path / "a")))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_spans_that_meet_hold_every_pair_once(tmp_path, monkeypatch, size):
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", size)
    folder = TextFolder(tmp_path, "de", "en")
    texts = [Pair(f"{i}{c}\r", f"{c}{i}") for i, c in enumerate(TORTURE)]
    write_set(folder, "train", texts)
    for cut in range(len(texts) + 1):
        blocks = [*folder.blocks("train", 0, cut), *folder.blocks("train", cut)]
        assert [pair for block in blocks for pair in block.pairs()] == texts
        numbers = [number for block in blocks for number, _ in block.numbered_pairs()]
        assert numbers == list(range(1, len(texts) + 1))
        assert all(len(block.pairs()) <= size for block in blocks)


@pytest.mark.parametrize(
    ("source", "target"), [(b"a\n" * 5, b"a\n" * 4), (b"a\n" * 3 + b"a", b"a\n" * 5), (b"", b"a")]
)
def test_blocks_of_unequal_files_are_refused(tmp_path, monkeypatch, source, target):
    monkeypatch.setattr(parallel, "BLOCK_PAIRS", 2)
    folder = TextFolder(tmp_path, "de", "en")
    for path, data in zip(folder.files("train"), (source, target), strict=True):
        path.write_bytes(data)
    counts = source.count(b"a"), target.count(b"a")
    wanted = (
        "{}/train.de has {} lines and {}/train.en has {}: not parallel; correct the file if it is "
        "yours, otherwise run: make reproduce"
    )
    for parts in ([()], [(0, 2), (2,)]):
        with pytest.raises(UserError) as error:
            [list(folder.blocks("train", *bounds)) for bounds in parts]
        assert str(error.value) == wanted.format(tmp_path, counts[0], tmp_path, counts[1])


@pytest.mark.parametrize("start", [0, 1])
def test_an_undecodable_byte_in_a_block_is_named_by_its_line(tmp_path, start):
    """Also where the block does not begin at the beginning of the file."""
    folder = TextFolder(tmp_path, "de", "en")
    write_set(folder, "train", [Pair("a", "one"), Pair("b", "two"), Pair("c", "it is three")])
    path = folder.files("train")[1]
    path.write_bytes(path.read_bytes().replace(b"three", b"thr\xe9e"))
    (block,) = folder.blocks("train", start)
    with pytest.raises(UserError, match=r"train\.en:3: byte 10 of the line is 0xe9: not UTF-8"):
        block.pairs()
