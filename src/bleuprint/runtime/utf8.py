r"""Lines of UTF-8, and messages that recognize files in other encodings and name a remedy.

A line ends at \n and nowhere else: other characters at which Python's `splitlines` cuts, such as
U+2028, occur inside sentences.
"""

from collections.abc import Iterable, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path

from bleuprint.runtime.errors import UserError

# The first bytes of compressed files, and the command that unpacks them.
_UNPACK_COMMANDS = {
    b"\x1f\x8b": "gzip -dc < OLD > NEW, or rename it so that its name ends in .gz",
    b"BZh": "bzip2 -dc < OLD > NEW, or rename it so that its name ends in .bz2",
    b"\xfd7zXZ\0": "xz -dc < OLD > NEW, or rename it so that its name ends in .xz",
    b"\x28\xb5\x2f\xfd": "zstd -dc < OLD > NEW, or rename it so that its name ends in .zst",
    b"PK\3\4": "python -m zipfile -e OLD FOLDER",
}
_PARQUET_MARK = b"PAR1"
_BYTE_ORDER_MARK = "\ufeff"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# How many bytes a message shows before and after a byte that is not UTF-8.
_SHOWN_BYTES = 20
# How many bytes are read at once: a whole test set, if it is available.
_BLOCK_BYTES = 1 << 22


def decode_line(
    line: bytes,
    file: Path | str,
    number: int,
    next_lines: Iterable[bytes] = (),
    non_ascii_lines: int = 0,
) -> str:
    r"""Decode a line of UTF-8, or raise an error that tells how to convert the file.

    Args:
        line: The line, with its \n unless it is the last one.
        file: The file, for messages.
        number: The number of the line, from 1.
        next_lines: The lines after this one; they are read only for a message.
        non_ascii_lines: How many lines before this one were UTF-8 with characters beyond ASCII. If
            there are any, the message advises against converting the whole file, which would damage
            these lines.

    Raises:
        UserError: The line is not UTF-8, or the file is compressed, is UTF-16, or ends its lines in
            \r; the message names the file, the line and the byte.
    """
    # For speed, since this function is called for each line of a corpus, only the first two lines
    # are examined. Any other line is examined if it cannot be decoded.
    if number <= 2:
        _check_first_lines(line, file, number)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise _describe_wrong_byte(error, file, number, next_lines, non_ascii_lines) from None


def _check_first_lines(line: bytes, file: Path | str, number: int) -> None:
    """Raise UserError if line 1 or 2 shows that a file is packed, UTF-16, or of an old Mac.

    A Parquet file is recognized, too. The second line is checked, since the first line of a file in
    UTF-16 may be empty.

    Args:
        line: The bytes of the line.
        file: The file, for messages.
        number: The number of the line, 1 or 2.
    """
    if line.startswith(_PARQUET_MARK):
        raise UserError(f"{file}: not UTF-8: the file is Parquet. In a corpus, set format: parquet")
    for first_bytes, command in _UNPACK_COMMANDS.items():
        if line.startswith(first_bytes):
            raise UserError(f"{file}: not UTF-8: the file is compressed. Unpack it: {command}")
    encoding = _utf16_encoding(line, number)
    if encoding is not None:
        command = _conversion_command(encoding)
        raise UserError(f"{file}: not UTF-8: the file looks like {encoding}. Convert it: {command}")
    is_only_line = number == 1 and not line.endswith(b"\n")
    if is_only_line and b"\r" in line:
        command = r"tr '\r' '\n' < OLD > NEW"
        raise UserError(
            f"{file}: its lines end in \\r alone, as on old Macs. In a corpus, set line_ends: cr. "
            f"Elsewhere, convert the file: {command}"
        )


def _utf16_encoding(line: bytes, number: int) -> str | None:
    """Return the UTF-16 encoding that a line seems to have, or None.

    A file in UTF-16 often begins with a byte order mark. Without it, UTF-16 is recognized by its
    zero bytes: UTF-16 writes an ASCII character as two bytes, of which one is zero.

    Args:
        line: The bytes of the line.
        number: The number of the line, 1 or 2.

    Returns:
        The name of the encoding for the command `iconv`, such as `UTF-16LE`.
    """
    if line.startswith(_UTF16_MARKS):
        return "UTF-16"
    zero_bytes = line.count(0)
    if zero_bytes <= len(line) // 4:
        return None
    # In big-endian order, the zero byte comes first, and the file begins with it. If the first line
    # has not shown this, the file is little-endian.
    is_big_endian = number == 1 and line.startswith(b"\0")
    return "UTF-16BE" if is_big_endian else "UTF-16LE"


def _conversion_command(encoding: str) -> str:
    """Return the command that converts a file from an encoding to UTF-8."""
    return f"iconv -f {encoding} -t UTF-8 OLD > NEW"


def _describe_wrong_byte(
    error: UnicodeDecodeError,
    file: Path | str,
    number: int,
    next_lines: Iterable[bytes],
    non_ascii_lines: int,
) -> UserError:
    """Return the error about a byte that is not UTF-8, with advice on how to convert the file.

    Western text that is not UTF-8 is mostly in CP1252, the encoding of Windows. So the message
    shows the line as CP1252, and the user can judge whether that is right.

    Args:
        error: Python's error, which has the line and the position of the byte.
        file: The file.
        number: The number of the line, from 1.
        next_lines: The lines after this one.
        non_ascii_lines: How many lines before this one are UTF-8 with characters beyond ASCII.
    """
    if error.reason == "unexpected end of data":
        advice = "Is the file cut off?"
    else:
        advice = _advice_on_conversion(error, next_lines, non_ascii_lines)
    byte = f"byte {error.start + 1} of the line is {error.object[error.start]:#04x}"
    return UserError(f"{file}:{number}: {byte}: not UTF-8. {advice}")


def _advice_on_conversion(
    error: UnicodeDecodeError, next_lines: Iterable[bytes], non_ascii_lines: int
) -> str:
    """Return advice for the user: how the line reads in CP1252, and how to convert the file.

    If other lines are UTF-8 already, converting the whole file would damage them, so only the wrong
    lines should be converted. Lines of ASCII are the same in both encodings and do not count.

    Args:
        error: Python's error, which has the line and the position of the byte.
        next_lines: The lines after this one.
        non_ascii_lines: How many lines before this one are UTF-8 with characters beyond ASCII.
    """
    first_shown = max(0, error.start - _SHOWN_BYTES)
    shown_bytes = error.object[first_shown : error.start + _SHOWN_BYTES].strip()
    as_cp1252 = repr(shown_bytes.decode("cp1252", "replace"))
    valid_lines = non_ascii_lines
    invalid_lines = 1
    for next_line in next_lines:
        if not next_line.isascii():
            if _is_utf8(next_line):
                valid_lines += 1
            else:
                invalid_lines += 1
    if valid_lines > 0:
        return (
            f"As CP1252 the line reads {as_cp1252}. Convert only the lines that are not UTF-8 "
            f"({invalid_lines} in all). Other lines of the file are UTF-8 already"
        )
    command = _conversion_command("CP1252")
    return f"As CP1252 the line reads {as_cp1252}. If that is right, convert the file: {command}"


def _is_utf8(line: bytes) -> bool:
    """Return whether a line is valid UTF-8."""
    return line.decode(errors="ignore").encode() == line


def utf8_error(file: Path | str, lines: Iterable[bytes]) -> UserError:
    """Return the error about the first line of a file that is not UTF-8.

    There must be such a line.

    Args:
        file: The file, for messages.
        lines: All lines of the file.
    """
    # The loop and `decode_line` share one iterator. This is safe: `decode_line` reads the remaining
    # lines only for an error, which ends the loop.
    remaining_lines = iter(lines)
    non_ascii_lines = 0
    try:
        for number, line in enumerate(remaining_lines, 1):
            text = decode_line(line, file, number, remaining_lines, non_ascii_lines)
            if not text.isascii():
                non_ascii_lines += 1
    except UserError as error:
        return error
    raise AssertionError(f"{file} is UTF-8")


def read_line_batches(
    stream: BufferedReader | BytesIO, name: str, max_lines: int
) -> Iterator[list[tuple[int, str]]]:
    r"""Yield the lines of a stream in batches, each line with its number.

    A batch contains the lines that are available now. So a user who types lines gets a reply to
    each line at once. A byte order mark at the start of the stream and a \r at the end of a line
    are removed, as in the files of a corpus.

    Args:
        stream: The bytes.
        name: The stream's name in messages.
        max_lines: The largest number of lines in a batch.

    Yields:
        Pairs of a line's number, from 1, and its text without \n.

    Raises:
        UserError: A line is not UTF-8; the lines before it have been yielded.
    """
    number = 1
    non_ascii_lines = 0
    for available_lines in _read_available_lines(stream, name):
        batch: list[tuple[int, str]] = []
        # `decode_line` reads the remaining lines only for an error message, which ends the loop.
        remaining_lines = iter(available_lines)
        try:
            for line in remaining_lines:
                text = decode_line(line, name, number, remaining_lines, non_ascii_lines)
                if not text.isascii():
                    non_ascii_lines += 1
                batch.append((number, _without_marks(text, number)))
                number += 1
                if len(batch) == max_lines:
                    yield batch
                    batch = []
        except UserError:
            # The caller can still use the lines before the wrong one.
            if batch:
                yield batch
            raise
        if batch:
            yield batch


def _read_available_lines(stream: BufferedReader | BytesIO, name: str) -> Iterator[list[bytes]]:
    """Yield lists of lines: those that have become available on a stream since the last list.

    Args:
        stream: The bytes.
        name: The stream's name in messages.
    """
    unfinished_line = b""
    is_at_end = False
    while not is_at_end:
        block = _read_available(stream, name)
        is_at_end = not block
        lines = BytesIO(unfinished_line + block).readlines()
        unfinished_line = b""
        if not is_at_end and lines and not lines[-1].endswith(b"\n"):
            # The rest of this line is in the next block.
            unfinished_line = lines.pop()
        yield lines


def _read_available(stream: BufferedReader | BytesIO, name: str) -> bytes:
    """Read the bytes that are available now; if there are none yet, wait for the first ones.

    Only at the end of the stream is the result empty.
    """
    try:
        return stream.read1(_BLOCK_BYTES)
    except OSError as error:
        error.filename = name
        raise


def _without_marks(text: str, number: int) -> str:
    r"""Return a line without its end (\n or \r\n), and the first line without byte order mark."""
    text = text.removesuffix("\n").removesuffix("\r")
    return text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text
