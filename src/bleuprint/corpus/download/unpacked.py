"""The bytes of .gz, .bz2 and .xz files: of all their streams, joined.

Python's readers take what follows a stream of .bz2 or .xz, a stream with a damaged header too, for
nothing. Here it is an error, unless it is zeros: padding, in .xz by fours, as its format says.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any

_BLOCK = 1 << 18


class _Gzip:
    """zlib's decompressor of one gzip member, with the interface of bz2's and lzma's."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, most: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, most)


DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": _Gzip,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
_PROGRAMS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
_ERRORS = (EOFError, OSError, lzma.LZMAError, zlib.error)


class Unpacked(io.RawIOBase):
    """The unpacked bytes of `file`; can seek if `file` can.

    Reading raises EOFError, OSError, lzma.LZMAError or zlib.error at damage.
    """

    def __init__(self, file: IO[bytes], extension: str) -> None:
        self._file, self._extension = file, extension
        self._stream: Any = None
        self._packed, self._is_over = b"", False
        # bytes read and unpacked, and where the last whole stream ended, packed and unpacked
        self._read, self._position, self._whole = 0, 0, (0, 0)
        self._rewind()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place, by unpacking what is before it again if it is behind."""
        if whence == io.SEEK_END:
            while self.read(_BLOCK):
                pass
        target = offset if whence == io.SEEK_SET else self._position + offset
        if target < self._position:
            self._file.seek(0)
            self._rewind()
        while self._position < target and self.read(min(_BLOCK, target - self._position)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        while not self._is_over:
            if self._stream.eof:
                self._next_stream()
                continue
            data = self._packed or (self._take() if self._stream.needs_input else b"")
            self._packed = b""
            ended = self._stream.needs_input and not data
            try:
                unpacked = self._stream.decompress(data, len(buffer))
                if ended and not unpacked and not self._stream.eof:
                    raise EOFError("it ends within a stream" if self._read else "empty")
            except _ERRORS as error:
                raise self._located(error) from None
            if unpacked:
                self._position += len(unpacked)
                buffer[: len(unpacked)] = unpacked
                return len(unpacked)
        return 0

    def _rewind(self) -> None:
        self._stream, self._packed = DECOMPRESSORS[self._extension](), b""
        self._is_over = False
        self._read, self._position, self._whole = 0, 0, (0, 0)

    def _take(self) -> bytes:
        data = self._file.read(_BLOCK)
        self._read += len(data)
        return data

    def _next_stream(self) -> None:
        """Pass over padding, and begin the next stream if there is one."""
        rest = self._stream.unused_data
        self._whole = self._read - len(rest), self._position
        zeros = 0
        while rest := rest or self._take():
            found = rest.lstrip(b"\0")
            zeros += len(rest) - len(found)
            if rest := found:
                break
        if self._extension == ".xz" and zeros % 4:
            raise self._located(OSError(f"padding of {zeros} zeros, which is no multiple of four"))
        if rest:
            self._stream, self._packed = DECOMPRESSORS[self._extension](), rest
        self._is_over = not rest

    def _located(self, error: Exception) -> Exception:
        """An error of what follows a whole stream, with what can be saved."""
        end, unpacked = self._whole
        if not end or unpacked != self._position:
            return error
        program = _PROGRAMS[self._extension]
        return OSError(
            f"what follows byte {end:,}, where a stream ends, cannot be unpacked ({error}); "
            f"{program} -dc writes what is before it, {unpacked:,} bytes, if the rest may be lost"
        )
