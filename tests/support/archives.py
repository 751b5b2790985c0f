"""Archives of every kind, and what is read out of them."""

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
MODES = {
    "a.tar": "w",
    "a.tar.gz": "w:gz",
    "a.tgz": "w:gz",
    "a.tar.bz2": "w:bz2",
    "a.tar.xz": "w:xz",
}


def entry(name, size=0, **other):
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in other.items():
        setattr(info, key, value)
    return info


def tar(files, mode="w"):
    """A tar file of (name or TarInfo, body)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as made:
        for name, body in files:
            info = entry(name, len(body)) if isinstance(name, str) else name
            made.addfile(info, io.BytesIO(body))
    return out.getvalue()


def tgz(files):
    return tar(files, "w:gz")


def zipped(files, how=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as made:
        for name, body in files:
            made.writestr(name, body)
    return out.getvalue()


def pack(name, files):
    return zipped(files) if name.endswith(".zip") else tar(files, MODES[name])


FILES = [("b/other.en", LONG), ("b/text.de", TEXT), ("b/last.fr", LONG)]
ARCHIVES = [*MODES, "a.zip"]
PACKED = {name: pack(name, FILES) for name in ARCHIVES}


def read(name, data, *member):
    """What a file called `name` that holds `data` unpacks to."""
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with open_member(Path(file.name), name, member) as stream:
            return stream.read()


def refused(*arguments):
    with pytest.raises(UserError) as error:
        read(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)
