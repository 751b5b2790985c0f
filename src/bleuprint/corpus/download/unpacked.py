"""The bytes of .gz, .bz2 and .xz files: of all their streams, joined.

Python's readers take what follows a stream of .bz2 or .xz, a stream with a damaged header too, for
nothing. Here it is an error, unless it is zeros: padding, in .xz by fours, as its format says.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

_BLOCK = 1 << 18


class _Gzip:
    """zlib's decompressor of one gzip member, with the interface of bz2's and lzma's."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._zlib, name)  # eof and unused_data

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


class Unpacked(io.RawIOBase):
    """The unpacked bytes of `file`, which can be passed over but not gone back to.

    Reading raises EOFError, OSError, lzma.LZMAError or zlib.error at damage.
    """

    def __init__(self, file: IO[bytes], extension: str) -> None:
        self._blocks, self._block, self._position = _blocks(file, extension), b"", 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, _: int = io.SEEK_SET) -> int:
        while self._position < offset and self.read(min(_BLOCK, offset - self._position)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer, unless the end comes before."""
        done = 0
        while done < len(buffer) and (self._block or (block := next(self._blocks, b""))):
            block = self._block or block
            part = block[: len(buffer) - done]
            buffer[done : done + len(part)] = part
            done, self._block = done + len(part), block[len(part) :]
        self._position += done
        return done


def _blocks(file: IO[bytes], extension: str) -> Iterator[bytes]:
    # of all bytes, and of those of whole streams: how many packed, how many unpacked
    read, written, whole, saved = 0, 0, 0, 0
    packed, ended = b"", False

    def take() -> bytes:
        nonlocal read
        data = file.read(_BLOCK)
        read += len(data)
        return data

    try:
        while not ended:
            stream = DECOMPRESSORS[extension]()
            while not stream.eof:
                needed = stream.needs_input
                packed = packed or (take() if needed else b"")
                unpacked = stream.decompress(packed, _BLOCK)
                if needed and not (packed or unpacked or stream.eof):
                    raise EOFError("it ends within a stream" if read else "empty")
                packed = b""
                written += len(unpacked)
                if unpacked:
                    yield unpacked
            packed = stream.unused_data
            whole, saved, zeros = read - len(packed), written, 0
            while not ended and not packed.strip(b"\0"):
                zeros += len(packed)
                packed = take()
                ended = not packed
            zeros += len(packed) - len(packed.lstrip(b"\0"))
            packed = packed.lstrip(b"\0")
            if extension == ".xz" and zeros % 4:
                raise OSError(f"padding of {zeros} zeros, which is no multiple of four")
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if not whole or saved != written or getattr(error, "errno", None) is not None:
            raise
        raise OSError(
            f"what follows byte {whole:,}, where a stream ends, cannot be unpacked ({error}); "
            f"{_PROGRAMS[extension]} -dc writes what is before it, {saved:,} bytes, if the rest "
            "may be lost"
        ) from None
