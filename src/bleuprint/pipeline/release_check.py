"""Whether a release has the files that it was made with, no other ones, and no link to elsewhere.

SHA256SUMS lists every file but itself and README.md, the card, which names the SHA-256 of the list.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from bleuprint.runtime.checksums import CHECKSUM_FILE, REMEDY, read_checksums
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import DamagedFile, read_bytes, sha256_of

CARD = "README.md"
# How the card names the SHA-256 of the list.
_IN_CARD = re.compile(rb"SHA-256 of `SHA256SUMS`: `([0-9a-f]{64})`")
# What a host of releases adds to a folder.
_OF_HOSTS = (".git", ".gitattributes")


def check_release(folder: Path) -> None:
    """Raise UserError if a folder is a release and differs from what its checksums say.

    A folder without SHA256SUMS, whose card names none, is not a release, such as a project.
    """
    reports = folder / "reports"
    if reports.is_symlink():
        raise UserError(f"{reports}: is a link to {reports.readlink()}: name that folder instead")
    sums, card = folder / CHECKSUM_FILE, folder / CARD
    named = _IN_CARD.search(read_bytes(card)) if card.is_file() else None
    if not os.path.lexists(sums):
        if named:
            raise UserError(f"{sums}: no such file, although {card} names it: {REMEDY}")
        return
    expected = read_checksums(sums)
    if named and sha256_of(sums) != named[1].decode():
        raise DamagedFile(sums, f"its SHA-256 is not the one in {CARD}", REMEDY)
    if not named and CARD not in expected:
        raise DamagedFile(sums, f"neither does it list {CARD}, nor does that name it", REMEDY)
    found = {path.relative_to(folder).as_posix() for path in _files(folder)}
    for name in sorted(found - expected.keys() - {CHECKSUM_FILE, CARD}):
        raise UserError(
            f"{folder / name}: no line of {CHECKSUM_FILE} lists it: remove it, or {REMEDY}"
        )
    for name, digest in expected.items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != digest:
            raise UserError(f"{path}: not the file that {CHECKSUM_FILE} names: {REMEDY}")


def _files(folder: Path) -> Iterator[Path]:
    """All files of a release; raises UserError at a link to a folder, and at a pipe or device."""
    for path in sorted(folder.iterdir()):
        if path.name in _OF_HOSTS:
            continue
        yield from _files_below(path)


def _files_below(path: Path) -> Iterator[Path]:
    """A file, or the files in a folder."""
    if path.is_symlink() and not path.is_file():
        raise UserError(f"{path}: is a link to {path.readlink()}, not a file: {REMEDY}")
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        for inner in sorted(path.iterdir()):
            yield from _files_below(inner)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise UserError(f"{path}: a pipe or device, not a file: {REMEDY}")
