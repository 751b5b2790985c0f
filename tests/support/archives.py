"""Archives of every kind that the stage download reads, made in memory."""

import functools
import io
import random
import tarfile
import zipfile
from pathlib import Path
from tempfile import NamedTemporaryFile

import pyarrow
import pytest

from bleuprint.corpus.download.archive import open_member
from bleuprint.runtime.errors import UserError

# Text with characters that end lines elsewhere, an empty line, and a last line without newline.
TEXT_LINES = [
    b"Guten Tag.\n",
    "Bis\u2028bald!\x0b\x1c\r\n".encode(),
    b"\n",
    b"without an end",
]
TEXT = b"".join(TEXT_LINES)
# Hard to compress, and more than a reader takes at once.
RANDOM_BYTES = random.Random(1).randbytes(400_000)
# The mode in which tarfile writes an archive of this name.
TAR_MODES = {
    "a.tar": "w",
    "a.tar.gz": "w:gz",
    "a.tgz": "w:gz",
    "a.tar.bz2": "w:bz2",
    "a.tar.xz": "w:xz",
}
# A name for each kind of archive.
ARCHIVE_NAMES = [*TAR_MODES, "a.zip"]


def tar_entry(name, size=0, **attributes):
    """Return the header of a file in a tar archive, with other attributes of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in attributes.items():
        setattr(info, key, value)
    return info


def tar(files, mode="w"):
    """Return a tar archive of files: pairs of a name or a TarInfo, and the content."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode=mode) as archive:
        for name, content in files:
            info = tar_entry(name, len(content)) if isinstance(name, str) else name
            archive.addfile(info, io.BytesIO(content))
    return output.getvalue()


def tgz(files):
    """Return a tar archive of files, compressed by gzip."""
    return tar(files, "w:gz")


def zip_archive(files, compression=zipfile.ZIP_DEFLATED):
    """Return a zip archive of files: pairs of a name and the content."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", compression) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return output.getvalue()


def zstd_compress(content):
    """Return content compressed as one frame of a .zst file."""
    return pyarrow.compress(content, codec="zstd", asbytes=True)


def pack(archive_name, files):
    """Return an archive of files, of the kind that the ending of its name says."""
    if archive_name.endswith(".zip"):
        return zip_archive(files)
    return tar(files, TAR_MODES[archive_name])


FILES = [("b/other.en", RANDOM_BYTES), ("b/text.de", TEXT), ("b/last.fr", RANDOM_BYTES)]


@functools.cache
def archive_of_files(archive_name):
    """Return an archive of FILES, of the kind that its name says; compressed at the first call."""
    return pack(archive_name, FILES)


def read_member(name, content, *members):
    """Return what the stage download reads from a file.

    Args:
        name: The name of the file, whose ending says what kind of archive it is.
        content: The content of the file.
        members: The file in the archive; further ones are in archives inside it.
    """
    with NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with open_member(Path(file.name), name, members) as stream:
            return stream.read()


def read_error(name, content, *members):
    """Return the error message, one line, with which `read_member` refuses these arguments."""
    with pytest.raises(UserError) as error:
        read_member(name, content, *members)
    assert "\n" not in str(error.value)
    return str(error.value)
