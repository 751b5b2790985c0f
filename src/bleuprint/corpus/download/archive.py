"""One file out of an archive, or out of an archive inside an archive, as a stream.

Nothing is extracted under a name that an archive contains. A file is compared with its SHA-256
before it is opened here; what Python's modules cannot unpack is reported in one line.
"""

import bz2
import difflib
import errno
import gzip
import io
import lzma
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from bleuprint.runtime.errors import UserError

_BLOCK = 1 << 18
_TARS = {".tar": "", ".tar.gz": "gz", ".tgz": "gz", ".tar.bz2": "bz2", ".tar.xz": "xz"}
_ARCHIVES = (*_TARS, ".zip")
# A damaged header, a compression method without a module and an encrypted member are RuntimeError
# and ValueError.
_UNPACKING_ERRORS = (
    *(EOFError, OSError, RuntimeError, ValueError),
    *(lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


class _Streams(io.RawIOBase):
    """The unpacked bytes of all streams of a .bz2 or .xz file.

    Python's own readers take what follows a stream, one with a damaged header too, for nothing.
    """

    def __init__(self, file: IO[bytes], new: Callable[[], Any]) -> None:
        self._file, self._new, self._stream = file, new, new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")  # zeros are padding
                while not packed and (block := self._file.read(_BLOCK)):
                    packed = block.lstrip(b"\0")
                if not packed:
                    return 0
                self._stream = self._new()
            elif self._stream.needs_input and not (packed := self._file.read(_BLOCK)):
                raise EOFError("it ends within a stream")
            if data := self._stream.decompress(packed, len(buffer)):
                buffer[: len(data)] = data
                return len(data)


_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": partial(_Streams, new=bz2.BZ2Decompressor),
    ".xz": partial(_Streams, new=lzma.LZMADecompressor),
}


@contextmanager
def open_member(path: Path, name: str, member: Sequence[str]) -> Iterator[BinaryIO]:
    """Open the file that `member` leads to in the archive at `path`, published as `name`.

    The extension decides how a file is unpacked: .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz and .zip
    are archives; .gz, .bz2 and .xz are decompressed; any other file is read unchanged. The stream
    cannot seek. Opening and reading it raise UserError.
    """
    with path.open("rb") as disk:
        file: IO[bytes] = disk
        last = name
        for inner in member:
            with _named_errors(name):
                file = _open_inner(file, last, name, inner)
            name, last = f"{name}!{inner}", inner
        if _extension(last, _ARCHIVES):
            raise UserError(f"{name}: an archive: archive_member must name a file in it")
        if packing := _extension(last, _OPENERS):
            with _named_errors(name):
                file = _OPENERS[packing](file)
        yield io.BufferedReader(_Stream(file, name), _BLOCK)


class _Stream(io.RawIOBase):
    """The bytes of `file`; errors of unpacking it name `name`."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _named_errors(self._name):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    """Report an error of Python's modules as damage of the file `name`."""
    try:
        yield
    except _UNPACKING_ERRORS as error:
        # EINVAL: an offset in a damaged file that is negative; other numbers are the disk's
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        what = "truncated or damaged, or not what its name says"
        raise UserError(f"{name}: {what}: {' '.join(str(error).split())}") from None


def _open_inner(file: IO[bytes], archive: str, name: str, inner: str) -> IO[bytes]:
    """The member `inner` of the archive `file`; `name` is its name in messages."""
    extension, member, names = _extension(archive, _ARCHIVES), _relative(inner), list[str]()
    if extension is None:
        known = ", ".join(_ARCHIVES)
        raise UserError(f"{name}: not an archive ({known}): it has no member {inner}")
    if extension == ".zip":
        zipped = zipfile.ZipFile(file)
        # of several with one name the last, as unzip takes
        entries = {_relative(entry.filename): entry for entry in zipped.infolist()}
        if member in entries:
            with _named_errors(f"{name}!{inner}"):
                return zipped.open(entries[member])
        names += entries
    else:
        mode: Any = f"r:{_TARS[extension]}"
        tar = tarfile.open(fileobj=file, mode=mode)  # noqa: SIM115 - closed with `file`
        for info in tar:
            names.append(_relative(info.name))
            if names[-1] == member:
                if (body := tar.extractfile(info) if info.isreg() else None) is None:
                    raise UserError(f"{name}!{inner}: not a regular file")
                return body
    near = difflib.get_close_matches(member, names, cutoff=0.5)
    hint = "similar names are" if near else "it holds"
    shown = ", ".join(near or names[:3]) or "nothing"
    raise UserError(f"{name}: no {member} in it; {hint} {shown}")


def _relative(member: str) -> str:
    """The name of a member as tar and unzip would write it, in Unicode's composed form (NFC).

    Archives from macOS have names with decomposed letters, `u` with U+0308 for `ü`.
    """
    return unicodedata.normalize("NFC", member.removeprefix("./").lstrip("/"))


def _extension(name: str, extensions: Iterable[str]) -> str | None:
    """Which of the extensions a name has; a URL may have a query after it."""
    names = (name.lower(), name.lower().partition("?")[0])
    return next((end for end in extensions if any(n.endswith(end) for n in names)), None)
