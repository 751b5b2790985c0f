r"""Files whose lines end in \r, as on old Macs: they are read as if their lines ended in \n."""

import io
from typing import BinaryIO

from typing_extensions import Buffer

# The bytes at the start of a file that show how its lines end.
_HEAD_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 18


def with_line_feeds(stream: BinaryIO) -> BinaryIO:
    r"""Return a stream with the bytes of a file, in which \n stands for each \r and each \r\n."""
    return io.BufferedReader(_LineFeeds(stream), _BLOCK_BYTES)


def ends_lines_in_cr(stream: BinaryIO) -> bool:
    r"""Return whether the lines of a file end in \r alone, by its first 65,536 bytes."""
    head = stream.read(_HEAD_BYTES)
    return b"\r" in head and b"\n" not in head


class _LineFeeds(io.RawIOBase):
    r"""The bytes of a file, with \n in place of each \r and each \r\n."""

    def __init__(self, stream: BinaryIO) -> None:
        """Wrap a stream.

        Args:
            stream: The bytes of the file.
        """
        self._stream = stream
        # Whether the last byte that was read is \r. If the next byte is \n, both are one line end.
        self._is_after_cr = False

    def readable(self) -> bool:
        """Return True; io.BufferedReader asks."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        r"""Read bytes into a buffer, with \n for each line end.

        Returns:
            The number of bytes; 0 at the end of the file.
        """
        view = memoryview(buffer)
        while True:
            block = self._stream.read(len(view))
            if not block:
                return 0
            converted = block
            if self._is_after_cr:
                # The \n belongs to a line end that has been written already.
                converted = converted.removeprefix(b"\n")
            self._is_after_cr = block.endswith(b"\r")
            converted = converted.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            # Nothing is left of a block that was a single \n: read on, as 0 means the end.
            if converted:
                view[: len(converted)] = converted
                return len(converted)
