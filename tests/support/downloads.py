"""Two versions of a file on a host, and helpers to download them to a store."""

import hashlib
import json

import pytest

from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.runtime.errors import UserError

# 400,000 bytes, more than one read returns. No two parts are alike.
CONTENT = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(12_500))
# Another version of the file, of the same size.
NEW_CONTENT = CONTENT[::-1]
HALF_SIZE = len(CONTENT) // 2


def sha256_of(content):
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def downloads_in(folder, mirror=None, has_lock=True):
    """Return where files come from and are kept: a store and a downloads.lock in a folder.

    Args:
        folder: The folder.
        mirror: The mirror that replaces all hosts, if any.
        has_lock: Whether SHA-256 sums are recorded in a downloads.lock.
    """
    lock = folder / "downloads.lock" if has_lock else None
    return Downloads(mirror, folder / "store", lock)


def download(folder, file, **options):
    """Fetch a file, record its sum as a successful run does, and return its content.

    Args:
        folder: The folder of the store.
        file: The settings of the file.
        **options: The options of `downloads_in`.
    """
    source = downloads_in(folder, **options)
    content = fetch(file, source).read_bytes()
    source.record()
    return content


def download_error(folder, file, **options):
    """Return the error message, one line, with which `download` fails."""
    with pytest.raises(UserError) as error:
        download(folder, file, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def complete_files(folder):
    """Return the complete files in the store; their names are SHA-256 sums of their URLs."""
    return [file for file in (folder / "store").iterdir() if len(file.name) == 64]


def files_in_store(folder):
    """Return all files in the store, also partial ones, except lock files."""
    files = (folder / "store").iterdir()
    return [file for file in files if file.suffix not in (".lock", ".guard")]


def read_lock(folder):
    """Return the content of downloads.lock: SHA-256 and size by URL."""
    return json.loads((folder / "downloads.lock").read_text())


def requested_ranges(host, path="/x"):
    """Return the header Range of each request for a path; None for the whole file."""
    return [request.range for request in host.requests_for(path)]


# A program that downloads a file; its arguments are the folder of the store and the URL.
DOWNLOAD_PROGRAM = """if True:
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
