"""Lines of published UTF-8 files, decoded in blocks.

A line ends at the byte \\n and nowhere else. A byte order mark at the start of the file and a \\r
before a \\n are removed; all other bytes are kept, NUL included.
"""

from collections.abc import Iterator
from typing import BinaryIO

from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import LONGEST_LINE

_BLOCK = 1 << 20
_HEAD = 1 << 10


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines without their ends.

    Raises UserError, naming file, line and byte, at bytes that are not UTF-8, and if a line has
    LONGEST_LINE bytes or more.
    """
    number = 0
    for block in _whole_lines(stream, name):
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            raise _undecodable(name, number, block, error.start, _latin_1(block, error)) from None
        if not number:
            text = text.removeprefix("\ufeff")
        lines = text.replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()  # what follows the last \n
        yield from lines
        number += len(lines)


def _whole_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The file in blocks that end with a \\n, except perhaps the last one."""
    head: list[bytes] = []
    length = number = 0
    while block := stream.read(_BLOCK):
        if not number and not head:
            _refuse_utf_16(block[:_HEAD], name)
        end = block.rfind(b"\n") + 1
        length += block.find(b"\n") if end else len(block)
        if length >= LONGEST_LINE:
            raise UserError(
                f"{name}:{number + 1}: the line is longer than {LONGEST_LINE >> 20} MiB"
            )
        if end:
            yield b"".join((*head, block[:end]))
            head, length = [], len(block) - end
            number += block.count(b"\n")
        head.append(block[end:])
    if length:
        yield b"".join(head)


def _refuse_utf_16(head: bytes, name: str) -> None:
    """Raise UserError if a file looks like UTF-16, which is often valid UTF-8 with NULs."""
    hint = "; the file looks like UTF-16"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _undecodable(name, 0, head, 0, hint)
    if head.count(0) > len(head) // 4:
        raise _undecodable(name, 0, head, head.index(0), hint)


def _latin_1(block: bytes, error: UnicodeDecodeError) -> str:
    """A hint if an ASCII character follows the byte, as after a letter in Latin-1."""
    after = block[error.start + 1 : error.start + 2]
    return "; the file looks like Latin-1" if after.isascii() and after else ""


def _undecodable(name: str, before: int, block: bytes, at: int, hint: str) -> UserError:
    """The error for the byte at `at` of a block that `before` lines precede."""
    number = before + block.count(b"\n", 0, at) + 1
    position = at - block.rfind(b"\n", 0, at)
    return UserError(
        f"{name}:{number}: byte {position} of the line is {block[at]:#04x}: not UTF-8{hint}"
    )
