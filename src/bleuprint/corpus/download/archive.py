"""Reading one file out of an archive, or out of an archive in an archive.

Everything is streamed, forward only; nothing is ever written under a name that an archive gives.
What is truncated, damaged, encrypted or a bomb (little that unpacks to much) is told in one line.
"""

import bz2
import difflib
import gzip
import io
import lzma
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tarfile import InvalidHeaderError, TruncatedHeaderError  # type: ignore[attr-defined]
from typing import IO, Any, BinaryIO

from bleuprint.runtime.errors import UserError

# More than RATIO bytes out of one in the file on disk, and more than FLOOR of them: a bomb.
RATIO = 100
FLOOR = 64 << 20
_BLOCK = 1 << 18
# Of so many names at most the nearest to a missing one are looked for.
_NAMES = 10_000

_PACKERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
_TARS = {".tar": "", ".tar.gz": ".gz", ".tgz": ".gz", ".tar.bz2": ".bz2", ".tar.xz": ".xz"}
_ARCHIVES = (*_TARS, ".zip")


class Damaged(UserError):
    """What was packed cannot be unpacked: a file cut short, or spoilt on its way."""


@contextmanager
def open_member(path: Path, name: str, member: Sequence[str]) -> Iterator[BinaryIO]:
    """Open the file that `member` leads to in the archive at `path`, published as `name`.

    The endings of the names tell what is packed how: .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz and
    .zip are archives, .gz, .bz2 and .xz (of the last of `member`, or of `name` without one) are
    unpacked, anything else is read as it is. The stream cannot go back. Raises UserError when
    opened, read or, for what the rest of an archive shows, when closed.
    """
    with ExitStack() as opened:
        disk = _Disk(opened.enter_context(path.open("rb")))
        stream = _Stream(disk, name, disk)
        last = name
        for inside in member:
            stream = opened.enter_context(_inside(stream, last, inside))
            last = inside
        if _ending(last, _ARCHIVES):
            raise UserError(f"{stream.name}: an archive: member must name a file in it")
        if ending := _ending(last, _PACKERS):
            stream = _unpacked(stream, ending)
        yield io.BufferedReader(stream, _BLOCK)


class _Disk:
    """A file, and how many bytes of it have been read; a spooled byte counts `worth` of one."""

    def __init__(self, file: IO[bytes], worth: float = 1.0) -> None:
        self._file, self._worth = file, worth
        self._size = file.seek(0, io.SEEK_END)
        self.taken = 0.0
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.taken += len(data) * self._worth
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_SET and not 0 <= offset <= self._size:
            raise EOFError("leads out of it")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True


class _Stream(io.RawIOBase):
    """The bytes of one layer of packing, `name` to the user, that lies on `disk`.

    What it costs is counted from where `around`, the layer it is in one piece with, began.
    """

    def __init__(self, inner: Any, name: str, disk: _Disk, around: "_Stream | None" = None) -> None:
        self.name, self.disk = name, disk
        self._inner = inner
        # The last block may have been read ahead, and hold the beginning of this layer.
        self._begin: float = around._begin if around else max(0.0, disk.taken - _BLOCK)
        self._position = self._made = 0

    @property
    def cost(self) -> float:
        """How many bytes on disk it took so far."""
        return self.disk.taken - self._begin

    @property
    def is_disk(self) -> bool:
        """Whether this is the file on disk itself, which alone may be read in any order."""
        return self._inner is self.disk

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _told(self.name):
            data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        self._made += len(data)
        if self._made > max(FLOOR, RATIO * self.cost):
            raise UserError(
                f"{self.name}: unpacks to more than {RATIO} times its size, like a bomb; "
                f"given up after {self._made} bytes"
            )
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, or what there is; in blocks, whatever a damaged header may ask for."""
        pieces = []
        while size:
            piece = super().read(_BLOCK if size < 0 else min(size, _BLOCK))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(pieces)

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go forward; what is not there is noticed when it is read."""
        if whence != io.SEEK_SET or offset < self._position:
            raise tarfile.ReadError("leads backwards")
        if self.is_disk:
            self._position = self._inner.seek(offset)
        while self._position < offset and self.read(min(_BLOCK, offset - self._position)):
            pass
        return self._position

    def drain(self) -> None:
        """Read to the end, where checksums are."""
        while self.read(_BLOCK):
            pass


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What the libraries say of data that are not as they should be, in one line."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise  # the disk's fault
        raise _damaged(name, error) from None
    except (
        EOFError,
        NotImplementedError,
        OverflowError,
        RecursionError,
        ValueError,
        lzma.LZMAError,
        struct.error,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> Damaged:
    return Damaged(f"{name}: truncated or damaged, or not what its name says: {error}")


def _ending(name: str, endings: Iterable[str]) -> str | None:
    """Which of the endings a name has; a URL may have a query after it."""
    names = (name.lower(), name.lower().partition("?")[0])
    return next((end for end in endings if any(n.endswith(end) for n in names)), None)


def _unpacked(stream: _Stream, ending: str) -> _Stream:
    packed = io.BufferedReader(stream, _BLOCK)
    if not packed.peek(1):
        raise Damaged(f"{stream.name}: empty")  # which gzip takes for nothing, packed
    return _Stream(_PACKERS[ending](packed), stream.name, stream.disk, stream)


@contextmanager
def _inside(stream: _Stream, name: str, inside: str) -> Iterator[_Stream]:
    """The member `inside` of the archive that `stream` holds, by its `name` there."""
    ending = _ending(name, _ARCHIVES)
    if ending is None:
        known = ", ".join(_ARCHIVES)
        raise UserError(f"{stream.name}: no archive ({known}), so that it has no member {inside}")
    if ending == ".zip":
        with _in_zip(stream, inside) as found:
            yield found
        return
    packer = _TARS[ending]
    with _in_tar(_unpacked(stream, packer) if packer else stream, inside) as found:
        yield found


def _plain(name: str) -> str:
    return name.removeprefix("./")


def _missing(archive: str, inside: str, names: Sequence[str]) -> UserError:
    near = difflib.get_close_matches(inside, names, cutoff=0.5)
    say = "near to it are" if near else "it holds"
    shown = ", ".join(near or names[:3]) or "nothing"
    return UserError(f"{archive}: no {inside} in it; {say} {shown}")


def _twice(archive: str, inside: str) -> UserError:
    return UserError(f"{archive}: {inside} is in it more than once")


class _Header(tarfile.TarInfo):
    """A header of which damage is told: TarFile takes it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> "_Header":
        try:
            header = super().fromtarfile(tar)
        except (InvalidHeaderError, TruncatedHeaderError) as error:
            raise tarfile.ReadError(str(error)) from None
        if header.size < 0:
            raise tarfile.ReadError("negative size")
        return header


class _Tar(tarfile.TarFile):
    """A tar file that does not keep the members it has gone past."""

    tarinfo = _Header
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        info = super().next()
        self.members.clear()
        return info


def _headers(tar: _Tar, name: str) -> Iterator[tarfile.TarInfo]:
    while True:
        with _told(name):
            info = tar.next()
        if info is None:
            return
        yield info


@contextmanager
def _in_tar(stream: _Stream, inside: str) -> Iterator[_Stream]:
    """A member of a tar file; when closed, the rest is looked through for damage and doubles."""
    with _told(stream.name):
        tar = _Tar(fileobj=stream, encoding="utf-8")
    headers = _headers(tar, stream.name)
    names: list[str] = []
    for info in headers:
        if _plain(info.name) == _plain(inside):
            break
        if info.isfile() and len(names) < _NAMES:
            names.append(_plain(info.name))
    else:
        raise _missing(stream.name, inside, names)
    name = f"{stream.name}!{inside}"
    if not info.isfile() or info.issparse():
        kind = "folder" if info.isdir() else "link" if info.issym() or info.islnk() else "special"
        raise UserError(f"{name}: not a regular file: {kind}")
    yield _Stream(tar.extractfile(info), name, stream.disk)
    if any(_plain(other.name) == _plain(inside) for other in headers):
        raise _twice(stream.name, inside)
    stream.drain()


@contextmanager
def _in_zip(stream: _Stream, inside: str) -> Iterator[_Stream]:
    """A member of a zip file, which has its contents at its end: it is spooled if need be."""
    with ExitStack() as opened:
        disk = stream.disk if stream.is_disk else opened.enter_context(_spooled(stream))
        with _told(stream.name):
            archive = opened.enter_context(zipfile.ZipFile(disk))
        infos = archive.infolist()
        found = [info for info in infos if _plain(info.filename) == _plain(inside)]
        if not found:
            names = [_plain(info.filename) for info in infos if not info.is_dir()]
            raise _missing(stream.name, inside, names[:_NAMES])
        if len(found) > 1:
            raise _twice(stream.name, inside)
        name = f"{stream.name}!{inside}"
        mode = found[0].external_attr >> 16
        if found[0].is_dir() or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise UserError(f"{name}: not a regular file")
        if found[0].flag_bits & 1:
            raise UserError(f"{name}: encrypted")
        with _told(name):
            body = opened.enter_context(archive.open(found[0]))
        yield _Stream(body, name, disk)


@contextmanager
def _spooled(stream: _Stream) -> Iterator[_Disk]:
    """A copy of what `stream` holds, in a temporary file without a name."""
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file, _BLOCK)
        yield _Disk(file, stream.cost / max(1, file.tell()))
