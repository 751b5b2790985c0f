"""Reads one file of an archive, or of an archive inside an archive, as a stream.

`open_member` is the entry point, and `member_names` lists the files of an archive. No file is
written, so the names in an archive cannot overwrite anything. fetch.py compares a file with its
SHA-256 before it is opened here.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TypeAlias

from typing_extensions import Buffer

from bleuprint.runtime.errors import UserError

# Packed bytes are read in blocks of this size.
_BLOCK_BYTES = 1 << 18
_TarMode: TypeAlias = Literal["r:", "r:gz", "r:bz2", "r:xz"]
# The mode in which Python's tarfile opens a tar file, by its extension.
_TAR_MODES: dict[str, _TarMode] = {
    ".tar": "r:",
    ".tar.gz": "r:gz",
    ".tgz": "r:gz",
    ".tar.bz2": "r:bz2",
    ".tar.xz": "r:xz",
}
_ARCHIVE_EXTENSIONS = (*_TAR_MODES, ".zip")
# What Python's modules raise for a damaged file. A damaged header, an unknown compression method
# and an encrypted member are RuntimeError or ValueError.
_UNPACKING_ERRORS = (
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
# The number of member names that a message lists.
_LISTED_MEMBERS = 3


@contextmanager
def open_member(path: Path, name: str, member: Sequence[str]) -> Iterator[BinaryIO]:
    """Open a file, or a file inside an archive, and decompress it while it is read.

    The extension decides how a file is unpacked: .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz and .zip
    are archives; .gz, .bz2, .xz and .zst are decompressed; any other file is read unchanged.

    Args:
        path: The file on this machine.
        name: The name or URL under which the file was published, such as `news.tar.gz`. Its
            extension decides, since the name of the file on this machine may have none.
        member: The name of the file inside the archive, its member. For an archive inside an
            archive, several names, the outermost first: `train.tar`, `train.de`. Empty if `path` is
            the wanted file itself.

    Yields:
        A stream of the unpacked bytes. It can seek only if the file is not packed. Reading it may
        also raise UserError.

    Raises:
        UserError: The file is damaged, or it does not contain the member.
    """
    with path.open("rb") as disk_file:
        opened = _open_in_archives(disk_file, name, member)
        if is_archive(opened.file_name):
            raise UserError(
                f"{opened.shown_name}: this is an archive. Name a file in it by archive_member. If "
                "it contains a file per language, set format: moses, and both"
            )
        file = opened.file
        compression = _extension(opened.file_name, _OPENERS)
        if compression is not None:
            with _unpacking_errors(opened.shown_name):
                file = _OPENERS[compression](file)
        unpacked = _UnpackedFile(file, opened.shown_name, can_seek=file is disk_file)
        yield io.BufferedReader(unpacked, _BLOCK_BYTES)


def member_names(path: Path, name: str, member: Sequence[str] = ()) -> list[str]:
    """List the files in an archive, without folders and links, in their order.

    Args:
        path: The archive on this machine.
        name: The name or URL under which the archive was published, such as `news.zip`.
        member: The name of an archive inside the archive, if this one is listed; see `open_member`.

    Raises:
        UserError: The file is damaged, or it is not an archive.
    """
    with path.open("rb") as disk_file:
        opened = _open_in_archives(disk_file, name, member)
        extension = _extension(opened.file_name, _ARCHIVE_EXTENSIONS)
        if extension is None:
            raise UserError(f"{opened.shown_name}: not an archive ({_listed_extensions()})")
        with _unpacking_errors(opened.shown_name):
            if extension == ".zip":
                entries = zipfile.ZipFile(opened.file).infolist()
                return [entry.filename for entry in entries if not entry.is_dir()]
            # Closed with `disk_file`.
            tar = tarfile.open(fileobj=opened.file, mode=_TAR_MODES[extension])  # noqa: SIM115
            return [entry.name for entry in tar if entry.isreg()]


def is_archive(name: str) -> bool:
    """Return whether a file is an archive, by the extension of its name or URL."""
    return _extension(name, _ARCHIVE_EXTENSIONS) is not None


def without_compression(name: str) -> str:
    """Return a name or URL in lower case, without a query and without an extension such as .gz."""
    without_query = name.lower().partition("?")[0]
    compression = _extension(without_query, _OPENERS)
    return without_query.removesuffix(compression or "")


@dataclass(frozen=True)
class _OpenedFile:
    """A file that may be inside an archive; it is not decompressed yet.

    Attributes:
        file: The bytes of the file.
        file_name: The name of the file, without the archives. Its extension says how it is packed.
        shown_name: How messages name the file, with its archives: `news.zip!train.tar!train.de`.
    """

    file: IO[bytes]
    file_name: str
    shown_name: str


def _open_in_archives(disk_file: IO[bytes], name: str, member: Sequence[str]) -> _OpenedFile:
    """Open a file inside an archive, or inside an archive in an archive.

    Args:
        disk_file: The file on this machine, the outermost archive.
        name: The name or URL under which it was published.
        member: The name of the file in the archive; see `open_member`.

    Raises:
        UserError: An archive is damaged, or does not contain the member.
    """
    file = disk_file
    file_name = name
    shown_name = name
    for member_name in member:
        with _unpacking_errors(shown_name):
            file = _open_archive_member(file, file_name, shown_name, member_name)
        shown_name = f"{shown_name}!{member_name}"
        file_name = member_name
    return _OpenedFile(file, file_name, shown_name)


@contextmanager
def _unpacking_errors(shown_name: str) -> Iterator[None]:
    """Report an error that occurs while a file is unpacked as a UserError with the file's name.

    Args:
        shown_name: The name of the file, for the message.
    """
    try:
        yield
    except _UNPACKING_ERRORS as error:
        # An OSError with an error number is a problem of the disk, which is reported elsewhere; but
        # not EINVAL, which follows if a damaged file leads to a negative offset.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        cause = " ".join(str(error).split())  # In one line.
        raise UserError(
            f"{shown_name}: cannot be unpacked: {cause}. It is damaged or cut short, or the "
            "extension of its name is wrong. Get the file again, or correct its name"
        ) from None


class _UnpackedFile(io.RawIOBase):
    """The bytes of an unpacked file, whose errors are reported under the file's name."""

    def __init__(self, file: IO[bytes], shown_name: str, can_seek: bool) -> None:
        """Wrap a file.

        Args:
            file: The unpacked bytes.
            shown_name: The name of the file in error messages.
            can_seek: Whether the file can jump to any position at once, as a file on the disk.
        """
        self._file = file
        self._shown_name = shown_name
        self._can_seek = can_seek

    def readable(self) -> bool:
        """Return True; io.BufferedReader asks."""
        return True

    def seekable(self) -> bool:
        """Return whether the file can jump to any position."""
        return self._can_seek

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Jump to a position, as every file of Python does.

        Args:
            offset: The position in bytes, relative to the place that `whence` names.
            whence: The start of the file, its current position or its end: io.SEEK_SET, ...

        Returns:
            The new position from the start.

        Raises:
            UnsupportedOperation: The file is packed, so it can only be read from start to end.
        """
        if not self._can_seek:
            raise io.UnsupportedOperation("a packed file cannot seek")
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Buffer) -> int:
        """Read bytes into a buffer. Python's buffered streams call this method.

        Returns:
            The number of bytes; 0 at the end of the file.
        """
        view = memoryview(buffer)
        with _unpacking_errors(self._shown_name):
            data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)


class _ConcatenatedStreams(io.RawIOBase):
    """The unpacked bytes of all compressed streams of a .bz2 or .xz file.

    Such a file may consist of several streams. Python's own readers ignore whatever follows a
    stream, also a stream with a damaged header; this reader refuses it.
    """

    def __init__(self, file: IO[bytes], new_decompressor: Callable[[], Any]) -> None:
        """Wrap a compressed file.

        Args:
            file: The packed bytes.
            new_decompressor: Creates a decompressor, which unpacks one stream.
        """
        self._file = file
        self._new_decompressor = new_decompressor
        self._decompressor = new_decompressor()

    def readable(self) -> bool:
        """Return True; io.BufferedReader asks."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Unpack the next bytes of the file into a buffer.

        Python's buffered streams call this method. Each compressed stream needs a new decompressor.

        Returns:
            The number of bytes; 0 at the end of the file.

        Raises:
            EOFError: The file ends within a stream.
        """
        view = memoryview(buffer)
        while True:
            packed = b""
            if self._decompressor.eof:
                packed = self._start_of_next_stream()
                if not packed:
                    return 0
                self._decompressor = self._new_decompressor()
            elif self._decompressor.needs_input:
                packed = self._file.read(_BLOCK_BYTES)
                if not packed:
                    raise EOFError("it ends within a stream")
            data = self._decompressor.decompress(packed, len(view))
            # Without data, read on: a decompressor may need more input before it returns anything.
            if data:
                view[: len(data)] = data
                return len(data)

    def _start_of_next_stream(self) -> bytes:
        """Find the next compressed stream of the file, after the one that has ended.

        Streams may be padded with zeros, which are skipped.

        Returns:
            The first bytes of the stream; empty at the end of the file.
        """
        # The decompressor may have been given bytes that follow the stream.
        packed: bytes = self._decompressor.unused_data.lstrip(b"\0")
        while not packed:
            block = self._file.read(_BLOCK_BYTES)
            if not block:
                return b""
            packed = block.lstrip(b"\0")
        return packed


def _open_zstandard(file: IO[bytes]) -> Any:
    """Open a .zst file, which may consist of several compressed frames.

    Returns:
        A file of Arrow. Its method `read` raises OSError if the file is damaged or cut short.
    """
    # Imported here: loading Arrow takes a tenth of a second, and few files are .zst.
    from pyarrow import CompressedInputStream, PythonFile

    return CompressedInputStream(PythonFile(file, mode="r"), "zstd")


# How a compressed file is opened, by its extension.
_OPENERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": partial(_ConcatenatedStreams, new_decompressor=bz2.BZ2Decompressor),
    ".xz": partial(_ConcatenatedStreams, new_decompressor=lzma.LZMADecompressor),
    ".zst": _open_zstandard,
}


def _open_archive_member(
    file: IO[bytes], archive_name: str, shown_name: str, member_name: str
) -> IO[bytes]:
    """Open a member of an archive, a file inside it.

    Args:
        file: The archive.
        archive_name: The name of the archive, such as `train.tar`. Its extension gives the format.
        shown_name: The name of the archive in messages. If it is inside another archive, it is
            named with this one: `news.zip!train.tar`.
        member_name: The name of the member.

    Raises:
        UserError: The file is not an archive, or does not contain the member.
    """
    extension = _extension(archive_name, _ARCHIVE_EXTENSIONS)
    if extension is None:
        raise UserError(
            f"{shown_name}: not an archive ({_listed_extensions()}), but archive_member names the "
            f"file {member_name} in it"
        )
    if extension == ".zip":
        return _open_zip_member(file, shown_name, member_name)
    return _open_tar_member(file, _TAR_MODES[extension], shown_name, member_name)


def _open_zip_member(file: IO[bytes], shown_name: str, member_name: str) -> IO[bytes]:
    """Open a member of a zip file.

    Args:
        file: The zip file.
        shown_name: The name of the zip file in messages.
        member_name: The name of the member.

    Raises:
        UserError: The zip file does not contain the member.
    """
    zip_file = zipfile.ZipFile(file)
    members = {}
    for entry in zip_file.infolist():
        # Of several members with one name, the last one is opened, as unzip does.
        members[_relative_name(entry.filename)] = entry
    wanted = _relative_name(member_name)
    if wanted not in members:
        raise _missing_member(shown_name, wanted, list(members))
    with _unpacking_errors(f"{shown_name}!{member_name}"):
        return zip_file.open(members[wanted])


def _open_tar_member(
    file: IO[bytes], mode: _TarMode, shown_name: str, member_name: str
) -> IO[bytes]:
    """Open a member of a tar file.

    A tar file has no table of contents, so it is read from the start, as far as the member.

    Args:
        file: The tar file.
        mode: How the tar file is compressed, such as "r:gz".
        shown_name: The name of the tar file in messages.
        member_name: The name of the member.

    Raises:
        UserError: The tar file does not contain the member, or the member is a folder or a link.
    """
    tar = tarfile.open(fileobj=file, mode=mode)  # noqa: SIM115 - closed with `file`
    wanted = _relative_name(member_name)
    names = []
    for entry in tar:
        name = _relative_name(entry.name)
        names.append(name)
        if name == wanted:
            content = tar.extractfile(entry) if entry.isreg() else None
            if content is None:  # A folder or a link.
                raise UserError(
                    f"{shown_name}!{member_name}: not a regular file, but a folder or link. Name a "
                    "file by archive_member"
                )
            return content
    raise _missing_member(shown_name, wanted, names)


def _missing_member(shown_name: str, wanted: str, names: Sequence[str]) -> UserError:
    """Return the error for a file that an archive does not contain.

    To help with misspelled names, it lists files with similar names, or the first ones.

    Args:
        shown_name: The name of the archive.
        wanted: The name of the missing file.
        names: The names of all files in the archive.
    """
    similar = difflib.get_close_matches(wanted, names, cutoff=0.5)
    if similar:
        return UserError(
            f"{shown_name}: this archive contains no file {wanted}. Similar names: "
            f"{', '.join(similar)}"
        )
    first_names = ", ".join(names[:_LISTED_MEMBERS]) or "none"
    return UserError(
        f"{shown_name}: this archive contains no file {wanted}. First names in it: {first_names}"
    )


def _listed_extensions() -> str:
    """List the extensions of archives for a message."""
    return ", ".join(_ARCHIVE_EXTENSIONS)


def _relative_name(member_name: str) -> str:
    """Return the name of a file in an archive in a form in which names can be compared.

    `./train.de` and `/train.de` become `train.de`. Archives from macOS contain names with
    decomposed letters (`u` and U+0308 in place of `ü`), which are composed.
    """
    relative_name = member_name.removeprefix("./").lstrip("/")
    return unicodedata.normalize("NFC", relative_name)


def _extension(name: str, extensions: Iterable[str]) -> str | None:
    """Return the extension of a file name or URL, if it is a known one.

    Args:
        name: The file name or URL. A URL may have a query after the extension, such as
            `x.tar.gz?download=1`.
        extensions: The known extensions, such as `.zip`. The first one that fits is returned.

    Returns:
        The extension; None if the name has none of them.
    """
    lower_name = name.lower()
    without_query = lower_name.partition("?")[0]
    for extension in extensions:
        if lower_name.endswith(extension) or without_query.endswith(extension):
            return extension
    return None
