"""Lines as they arrive, and files in other encodings, which every reader names with a command."""

import gzip
import io
import os
import re
import subprocess
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from bleuprint.corpus.download.formats import lines as formats
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.utf8 import read_line_batches
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text import parallel

GERMAN = "x: eins\ny: so „schön“, süß\n"
READERS: dict[str, Callable[[Path], object]] = {
    "download": lambda path: list(formats.read_lines(path.open("rb"), str(path))),
    "text": lambda path: list(parallel.read_lines(path)),
    "stream": lambda path: list(read_line_batches(path.open("rb"), str(path), 9)),
    "settings": load_yaml,
}
Line = tuple[int, str]


def read(data, most=3):
    return list(read_line_batches(io.BytesIO(data), "x", most))


def test_lines_end_at_line_feeds_alone():
    content = "\ufeffa\r\n\u2028b\x0c\n\ufeff\nla\rst".encode()
    found = [line for lines in read(content) for line in lines]
    assert found == [(1, "a"), (2, "\u2028b\x0c"), (3, "\ufeff"), (4, "la\rst")]
    assert read(b"") == []


def test_a_caller_that_waits_after_each_line_gets_it():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        lines = read_line_batches(stream, "x", 100)
        try:
            for number in (1, 2):
                os.write(writing, b"hello\n")
                assert next_within(lines, 60) == [(number, "hello")]
        finally:
            os.close(writing)
        assert list(lines) == []


def next_within(lines, seconds):
    """The next batch of lines; None if it takes longer than `seconds`."""
    found: list[list[Line]] = []
    waiting = threading.Thread(target=lambda: found.append(next(lines)), daemon=True)
    waiting.start()
    waiting.join(seconds)
    return found[0] if found else None


def test_lines_across_blocks_are_whole():
    count = 300_000  # of about seven bytes, in blocks of a mebibyte
    found = read("".join(f"{number}\n" for number in range(1, count + 1)).encode(), 1000)
    assert [line for lines in found for line in lines] == [
        (number, str(number)) for number in range(1, count + 1)
    ]


def test_a_batch_has_one_line_at_least_and_no_more_than_asked_for():
    sizes = [len(lines) for lines in read(b"a\n" * 1000, most=3)]
    assert sum(sizes) == 1000
    assert set(sizes) <= {1, 2, 3}


def test_a_bad_line_is_refused_without_waiting_for_the_next():
    """The writer of a pipe may wait for the message before it goes on."""
    reading, writing = os.pipe()
    refused = []

    def read_all():
        with pytest.raises(UserError) as error:
            list(read_line_batches(stream, "standard input", 9))
        refused.append(str(error.value))

    with os.fdopen(reading, "rb") as stream:
        os.write(writing, "süß\n".encode() + b"s\xfc\xdf\nnext\n")
        waiting = threading.Thread(target=read_all, daemon=True)
        waiting.start()
        waiting.join(60)
        was_refused_at_once = bool(refused)
        os.close(writing)
        waiting.join(60)
    assert was_refused_at_once
    assert refused[0].startswith("standard input:2: byte 2 of the line is 0xfc: not UTF-8")


def test_lines_before_a_bad_one_are_not_lost():
    lines = read_line_batches(io.BytesIO(b"a\n" * 999 + b"\xc3(\nd\n"), "in.txt", 2000)
    found = []
    with pytest.raises(UserError, match=r"in\.txt:1000: byte 1 of the line is 0xc3: not UTF-8"):
        for some in lines:
            found += some
    assert found == [(number, "a") for number in range(1, 1000)]


def refusal(reader, path, content):
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        READERS[reader](path)
    assert "\n" not in str(error.value)
    return str(error.value)


OTHER_ENCODINGS = {
    "utf-16": (GERMAN.encode("utf-16"), " not UTF-8: the file looks like UTF-16: "),
    "packed": (gzip.compress(GERMAN.encode(), mtime=0), " not UTF-8: the file is packed: gzip"),
    "cp1252": (
        GERMAN.encode("cp1252"),
        "2: byte 7 of the line is 0x84: not UTF-8; as CP1252 it reads 'y: so „schön“, süß': ",
    ),
}
# Found by their NUL characters, which YAML refuses and files of bleuprint do not contain.
UTF_16_WITHOUT_MARK = {
    "utf-16-le": (GERMAN.encode("utf-16-le"), " not UTF-8: the file looks like UTF-16LE: "),
    "utf-16-be": (GERMAN.encode("utf-16-be"), " not UTF-8: the file looks like UTF-16BE: "),
    "first line empty": (
        b"\n\0" + GERMAN.encode("utf-16-le"),
        " not UTF-8: the file looks like UTF-16LE: ",
    ),
}
CONVERTED = [
    *product(READERS, OTHER_ENCODINGS),
    *product(["download", "stream"], UTF_16_WITHOUT_MARK),
]


@pytest.mark.parametrize(("reader", "encoding"), CONVERTED)
def test_the_command_of_the_message_converts_the_file(reader, encoding, tmp_path):
    content, said = {**OTHER_ENCODINGS, **UTF_16_WITHOUT_MARK}[encoding]
    path = tmp_path / "text"
    message = refusal(reader, path, content)
    assert message.startswith(f"{path}:{said}")
    command = re.search("(iconv|gzip) .* OLD > NEW", message)[0]  # type: ignore[index]
    new = tmp_path / "new"
    command = command.replace("OLD", str(path)).replace("NEW", str(new))
    subprocess.run(command, shell=True, check=True)
    assert new.read_text("utf-8").lstrip("\n") == GERMAN


@pytest.mark.parametrize("start", [b"BZh91AY&SY", b"\xfd7zXZ\0\0", b"PK\3\4\x14\0", b"(\xb5/\xfd"])
def test_other_packed_files_are_named(start, tmp_path):
    content = start + bytes(range(128, 256))
    assert "the file is packed" in refusal("download", tmp_path / "x", content)


@pytest.mark.parametrize("content", ["süß\n{}\n{}\n", "{}\n{}\nsüß\n"])
def test_lines_of_utf_8_are_not_to_be_converted(content, tmp_path):
    """Where some lines are CP1252, as in files that several people have edited."""
    one, two = ("stra\udcdfe", "b\udcf6se")
    raw = content.format(one, two).encode(errors="surrogateescape")
    for reader in READERS:
        message = refusal(reader, tmp_path / "x", raw)
        assert "as CP1252 it reads 'straße': 2 of its lines are not UTF-8, and others" in message
        assert "iconv" not in message


def test_a_file_that_ends_within_a_character(tmp_path):
    content = "eins\nzwö\nfünf".encode()[:-3]
    said = f"{tmp_path}/x:3: byte 2 of the line is 0xc3: not UTF-8; is the file cut short?"
    for reader in ("download", "text", "stream"):
        assert refusal(reader, tmp_path / "x", content) == said
