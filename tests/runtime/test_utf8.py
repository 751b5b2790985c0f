"""Lines as they arrive, and files in other encodings, which every reader names with a command."""

import gzip
import io
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bleuprint.corpus.download.formats import lines as formats
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.utf8 import read_line_batches
from bleuprint.runtime.yaml_tree import load_yaml
from bleuprint.text import parallel

GERMAN_TEXT = "x: eins\ny: so „schön“, süß\n"
# The functions of this project that read text: each must refuse a file that is not UTF-8.
READER_BY_NAME: dict[str, Callable[[Path], object]] = {
    "download": lambda path: list(formats.read_lines(path.open("rb"), str(path))),
    "text": lambda path: list(parallel.read_lines(path)),
    "stream": lambda path: list(read_line_batches(path.open("rb"), str(path), 9)),
    "settings": load_yaml,
}
READER_NAMES = list(READER_BY_NAME)
NumberedLine = tuple[int, str]


def read_batches(content: bytes, batch_size: int = 3) -> list[list[NumberedLine]]:
    """Return the numbered lines of a text, in batches of at most `batch_size`."""
    return list(read_line_batches(io.BytesIO(content), "x", batch_size))


def flatten(batches: list[list[NumberedLine]]) -> list[NumberedLine]:
    """Return the numbered lines of all batches."""
    lines = []
    for batch in batches:
        lines += batch
    return lines


def test_only_line_feeds_end_lines():
    """Other separators of Unicode and a byte order mark within the text belong to the lines."""
    content = "\ufeffa\r\n\u2028b\x0c\n\ufeff\nla\rst".encode()

    lines = flatten(read_batches(content))

    assert lines == [(1, "a"), (2, "\u2028b\x0c"), (3, "\ufeff"), (4, "la\rst")]


def test_an_empty_file_has_no_lines():
    """The batches of its lines are an empty list, not one empty batch."""
    assert read_batches(b"") == []


def test_a_line_is_returned_before_the_next_one_is_written():
    """Someone who types sentences waits for each translation before the next sentence."""
    reading_end, writing_end = os.pipe()
    with os.fdopen(reading_end, "rb") as stream:
        batches = read_line_batches(stream, "x", 100)
        try:
            for number in (1, 2):
                os.write(writing_end, b"hello\n")
                assert next_within(batches, seconds=60) == [(number, "hello")]
        finally:
            os.close(writing_end)
        assert list(batches) == []


def next_within(batches: Iterator[list[NumberedLine]], seconds: float) -> list[NumberedLine] | None:
    """Return the next batch of lines; None if it takes longer than `seconds`."""
    arrived_batches: list[list[NumberedLine]] = []
    waiting = threading.Thread(target=lambda: arrived_batches.append(next(batches)), daemon=True)
    waiting.start()
    waiting.join(seconds)
    if not arrived_batches:
        return None
    return arrived_batches[0]


def test_lines_are_joined_across_the_blocks_of_a_file():
    count = 300_000  # Lines of about 7 bytes: 2 MB, which are read in blocks of 1 MiB.
    expected = [(number, str(number)) for number in range(1, count + 1)]
    content = "".join(f"{number}\n" for number in range(1, count + 1)).encode()

    batches = read_batches(content, batch_size=1000)

    assert flatten(batches) == expected


def test_a_batch_has_at_least_one_line_and_at_most_the_batch_size():
    """1,000 lines are read in batches of at most 3."""
    batches = read_batches(b"a\n" * 1000, batch_size=3)

    sizes = [len(batch) for batch in batches]
    assert sum(sizes) == 1000
    assert set(sizes) <= {1, 2, 3}


def test_a_bad_line_is_refused_without_waiting_for_the_next():
    """The writer of a pipe may wait for the message before it goes on."""
    reading_end, writing_end = os.pipe()
    messages = []

    def read_all():
        with pytest.raises(UserError) as error:
            list(read_line_batches(stream, "standard input", 9))
        messages.append(str(error.value))

    with os.fdopen(reading_end, "rb") as stream:
        os.write(writing_end, "süß\n".encode() + b"s\xfc\xdf\nnext\n")
        reader = threading.Thread(target=read_all, daemon=True)
        reader.start()
        reader.join(60)
        was_refused_before_the_pipe_was_closed = bool(messages)
        os.close(writing_end)
        reader.join(60)

    assert was_refused_before_the_pipe_was_closed
    assert messages[0].startswith("standard input:2: byte 2 of the line is 0xfc: not UTF-8")


def test_lines_before_a_line_that_is_not_utf_8_are_returned():
    """A user who translates a file gets the translations up to the bad line 1000."""
    content = b"a\n" * 999 + b"\xc3(\nd\n"  # In UTF-8, no "(" may follow the byte C3.
    batches = read_line_batches(io.BytesIO(content), "in.txt", 2000)

    lines = []
    with pytest.raises(UserError, match=r"in\.txt:1000: byte 1 of the line is 0xc3: not UTF-8"):
        for batch in batches:
            lines += batch

    assert lines == [(number, "a") for number in range(1, 1000)]


def error_message(reader: str, path: Path, content: bytes) -> str:
    """Return the message, of one line, with which a reader refuses a file of this content.

    Args:
        reader: A name in READER_BY_NAME.
        path: Where the file is written.
        content: What is written to it.
    """
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        READER_BY_NAME[reader](path)
    assert "\n" not in str(error.value)
    return str(error.value)


def check_command_converts(message: str, path: Path) -> None:
    """Run the command that ends a message, and check that it converts the file to GERMAN_TEXT.

    The message calls the files OLD and NEW; leading empty lines are ignored.
    """
    converted = path.with_name("converted")
    command = re.search("(iconv|gzip) .* OLD > NEW", message)[0]  # type: ignore[index]
    command = command.replace("OLD", str(path)).replace("NEW", str(converted))
    subprocess.run(command, shell=True, check=True)
    assert converted.read_text("utf-8").lstrip("\n") == GERMAN_TEXT


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(
            GERMAN_TEXT.encode("utf-16"),
            " not UTF-8: the file looks like UTF-16. Convert it: ",
            id="utf-16",
        ),
        pytest.param(
            gzip.compress(GERMAN_TEXT.encode(), mtime=0),
            " not UTF-8: the file is compressed. Unpack it: gzip",
            id="gzip",
        ),
        pytest.param(
            GERMAN_TEXT.encode("cp1252"),
            "2: byte 7 of the line is 0x84: not UTF-8. "
            "As CP1252 the line reads 'y: so „schön“, süß'. ",
            id="cp1252",
        ),
    ],
)
@pytest.mark.parametrize("reader", READER_NAMES)
def test_the_message_about_another_encoding_has_a_command_that_converts_the_file(
    reader, content, problem, tmp_path
):
    """The file contains GERMAN_TEXT, "x: eins / y: so „schön“, süß", in another encoding.

    The command in the message, with iconv or gzip, must convert the file to this text in UTF-8.
    """
    path = tmp_path / "text"

    message = error_message(reader, path, content)

    assert message.startswith(f"{path}:{problem}")
    check_command_converts(message, path)


# Without a byte order mark, UTF-16 is recognized by its NUL characters. The other readers never
# get that far: YAML refuses NUL itself, and files that this project writes do not contain it.
@pytest.mark.parametrize("reader", ["download", "stream"])
@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        pytest.param(GERMAN_TEXT.encode("utf-16-le"), "UTF-16LE", id="little-endian"),
        pytest.param(GERMAN_TEXT.encode("utf-16-be"), "UTF-16BE", id="big-endian"),
        pytest.param(
            "\n".encode("utf-16-le") + GERMAN_TEXT.encode("utf-16-le"),
            "UTF-16LE",
            id="first line empty",
        ),
    ],
)
def test_utf_16_without_a_byte_order_mark_is_recognized(reader, content, encoding, tmp_path):
    """In UTF-16, every second byte of a German text is zero.

    The command in the message must convert the file to GERMAN_TEXT in UTF-8.
    """
    path = tmp_path / "text"

    message = error_message(reader, path, content)

    assert message.startswith(f"{path}: not UTF-8: the file looks like {encoding}. Convert it: ")
    check_command_converts(message, path)


@pytest.mark.parametrize(
    "first_bytes",
    [
        pytest.param(b"BZh91AY&SY", id="bzip2"),
        pytest.param(b"\xfd7zXZ\0\0", id="xz"),
        pytest.param(b"PK\3\4\x14\0", id="zip"),
        pytest.param(b"(\xb5/\xfd", id="zstandard"),
    ],
)
def test_a_packed_file_is_recognized_by_its_first_bytes(first_bytes, tmp_path):
    """The user may have forgotten to unpack it; the name of the file does not tell."""
    content = first_bytes + bytes(range(128, 256))

    message = error_message("download", tmp_path / "x", content)

    assert "the file is compressed" in message


@pytest.mark.parametrize("reader", READER_NAMES)
@pytest.mark.parametrize(
    "template",
    [
        pytest.param("süß\n{}\n{}\n", id="UTF-8 first"),
        pytest.param("{}\n{}\nsüß\n", id="CP1252 first"),
    ],
)
def test_no_command_is_given_for_a_file_that_mixes_utf_8_and_cp1252(template, reader, tmp_path):
    """Several people may have edited the file; iconv would damage the lines that are UTF-8."""
    cp1252_lines = ("straße".encode("cp1252"), "böse".encode("cp1252"))
    content = template.encode().replace(b"{}", b"%b") % cp1252_lines

    message = error_message(reader, tmp_path / "x", content)

    assert "As CP1252 the line reads 'straße'. Convert only the lines that are not UTF-8" in message
    assert "(2 in all)" in message
    assert "iconv" not in message


@pytest.mark.parametrize("reader", ["download", "text", "stream"])
def test_the_message_about_a_file_that_ends_within_a_character_asks_if_it_is_cut_short(
    reader, tmp_path
):
    """An interrupted download may end between the two bytes of a character."""
    path = tmp_path / "x"
    # "ü" has two bytes, C3 BC; without "nf" and BC the file ends within it.
    content = "eins\nzwö\nfünf".encode()[:-3]

    message = error_message(reader, path, content)

    expected = f"{path}:3: byte 2 of the line is 0xc3: not UTF-8. Is the file cut off?"
    assert message == expected
