"""Two versions of a file on a host, and helpers to download them to a store."""

import hashlib
import json

import pytest

from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.runtime.errors import UserError

# More than one read returns, and no two parts alike.
BODY = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(12_500))
NEW = BODY[::-1]
HALF = len(BODY) // 2


def sum_of(body):
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(body).hexdigest()


def place(tmp_path, mirror=None, lock=True):
    """Return where files are fetched from and kept: a mirror or the host, a store, and a lock."""
    return Downloads(mirror, tmp_path / "store", tmp_path / "downloads.lock" if lock else None)


def get(tmp_path, file, **source):
    """Fetch a file, record it as a run does that ends well, and return its content."""
    source = place(tmp_path, **source)
    body = fetch(file, source).read_bytes()
    source.record()
    return body


def refused(tmp_path, file, **source):
    """Return the error, in one line, with which a file is refused."""
    with pytest.raises(UserError) as error:
        get(tmp_path, file, **source)
    assert "\n" not in str(error.value)
    return str(error.value)


def kept(tmp_path):
    """Return the whole files in the store; their names are SHA-256 sums."""
    return [file for file in (tmp_path / "store").iterdir() if len(file.name) == 64]


def left(tmp_path):
    """Return all files in the store except lock files."""
    return [f for f in (tmp_path / "store").iterdir() if f.suffix not in (".lock", ".guard")]


def locked(tmp_path):
    """Return the content of downloads.lock."""
    return json.loads((tmp_path / "downloads.lock").read_text())


def ranges(host, path="/x"):
    """Return the Range that each request for a path asked for."""
    return [seen.range for seen in host.asked(path)]


# For a process of its own; its arguments are the folder and the URL.
CHILD = """if True:
    import sys
    from pathlib import Path
    from bleuprint.corpus.download.fetch import Downloads, fetch
    from bleuprint.config.corpus_files import File
    folder = Path(sys.argv[1])
    store, lock = folder / "store", folder / "downloads.lock"
    file, source = File(url=sys.argv[2]), Downloads(None, store, lock)
    fetch(file, source)
    source.record()
"""
