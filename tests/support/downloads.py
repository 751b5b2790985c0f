"""Two versions of a file on a host, and helpers to download them to a store."""

import hashlib
import json

import pytest

from bleuprint.corpus.download.fetch import Source, fetch
from bleuprint.runtime.errors import UserError

# More than one read returns, and no two parts alike.
BODY = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(12_500))
NEW = BODY[::-1]
HALF = len(BODY) // 2


def sum_of(body):
    return hashlib.sha256(body).hexdigest()


def place(tmp_path, mirror=None, lock=True):
    return Source(mirror, tmp_path / "store", tmp_path / "downloads.lock" if lock else None)


def get(tmp_path, file, **source):
    """What a run reads to its end."""
    source = place(tmp_path, **source)
    body = fetch(file, source).read_bytes()
    source.record()
    return body


def refused(tmp_path, file, **source):
    with pytest.raises(UserError) as error:
        get(tmp_path, file, **source)
    assert "\n" not in str(error.value)
    return str(error.value)


def kept(tmp_path):
    """Whole files in the store."""
    return [file for file in (tmp_path / "store").iterdir() if len(file.name) == 64]


def left(tmp_path):
    """Everything in the store except lock files."""
    return [f for f in (tmp_path / "store").iterdir() if f.suffix not in (".lock", ".guard")]


def locked(tmp_path):
    return json.loads((tmp_path / "downloads.lock").read_text())


def ranges(host, path="/x"):
    return [seen.range for seen in host.asked(path)]


# For a process of its own; its arguments are the folder and the URL.
CHILD = """if True:
    import sys
    from pathlib import Path
    from bleuprint.corpus.download.fetch import Source, fetch
    from bleuprint.config.corpus_files import File
    folder = Path(sys.argv[1])
    file, source = File(url=sys.argv[2]), Source(None, folder / "store", folder / "downloads.lock")
    fetch(file, source)
    source.record()
"""
