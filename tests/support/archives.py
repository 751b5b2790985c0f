"""Archives of every kind that the stage download reads, made in memory."""

import functools
import io
import random
import tarfile
import zipfile
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from bleuprint.corpus.download.archive import open_member
from bleuprint.runtime.errors import UserError

LINES = [b"Guten Tag.\n", "Bis\u2028bald!\x0b\x1c\r\n".encode(), b"\n", b"without an end"]
TEXT = b"".join(LINES)
# Hard to compress, and more than a reader takes at once.
LONG = random.Random(1).randbytes(400_000)
# How tarfile writes each of these archives.
MODES = {
    "a.tar": "w",
    "a.tar.gz": "w:gz",
    "a.tgz": "w:gz",
    "a.tar.bz2": "w:bz2",
    "a.tar.xz": "w:xz",
}


def entry(name, size=0, **other):
    """Return the header of a file in a tar archive, with other attributes of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in other.items():
        setattr(info, key, value)
    return info


def tar(files, mode="w"):
    """Return a tar archive of files: pairs of a name or a TarInfo, and the content."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode=mode) as archive:
        for name, content in files:
            info = entry(name, len(content)) if isinstance(name, str) else name
            archive.addfile(info, io.BytesIO(content))
    return output.getvalue()


def tgz(files):
    """Return a tar archive of files, compressed by gzip."""
    return tar(files, "w:gz")


def zipped(files, how=zipfile.ZIP_DEFLATED):
    """Return a zip archive of files: pairs of a name and the content."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", how) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return output.getvalue()


def pack(name, files):
    """Return an archive of files, of the kind that the ending of its name says."""
    return zipped(files) if name.endswith(".zip") else tar(files, MODES[name])


FILES = [("b/other.en", LONG), ("b/text.de", TEXT), ("b/last.fr", LONG)]
ARCHIVES = [*MODES, "a.zip"]


@functools.cache
def packed(name):
    """The archive with FILES that is called `name`, compressed at the first call."""
    return pack(name, FILES)


def read(name, data, *member):
    """Return what is unpacked from a file.

    Args:
        name: The name of the file, whose ending says what kind of archive it is.
        data: The content of the file.
        member: The file in the archive; further ones are in archives inside it.
    """
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with open_member(Path(file.name), name, member) as stream:
            return stream.read()


def refused(*arguments):
    """Return the error, in one line, with which `read` refuses these arguments."""
    with pytest.raises(UserError) as error:
        read(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)
