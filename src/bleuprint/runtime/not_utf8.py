"""The error for text that is not UTF-8, with what it looks like and how to convert it."""

from bleuprint.runtime.errors import UserError

UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def looks_like_utf_16(line: bytes) -> bool:
    """Whether a line, one of the first two, is of a file in UTF-16.

    Without its mark, UTF-16 is often valid UTF-8 with NULs. The first line may be empty.
    """
    return line.startswith(UTF_16_MARKS) or line.count(0) > len(line) // 4


def not_utf8(line: bytes, byte: int, file: object, number: int) -> UserError:
    """The error for a byte of line `number` of a file."""
    place = f"{file}:{number}: byte {byte + 1} of the line is {line[byte]:#04x}: not UTF-8"
    return UserError(f"{place}{_hint(line, byte, number)}")


def _hint(line: bytes, byte: int, number: int) -> str:
    if number <= 2 and looks_like_utf_16(line):
        return "; the file looks like UTF-16: iconv -f UTF-16 -t UTF-8 OLD > NEW"
    # in Latin-1, an ASCII character follows most other letters; CP1252 is Latin-1 with more marks
    after = line[byte + 1 : byte + 2]
    if after and after.isascii():
        return "; the file looks like Latin-1: iconv -f CP1252 -t UTF-8 OLD > NEW"
    return ""
