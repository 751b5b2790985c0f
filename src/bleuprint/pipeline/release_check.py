"""Checks that a release contains exactly the files that it was written with.

SHA256SUMS lists the SHA-256 of every file except itself and README.md. README.md, the model card,
names the SHA-256 of SHA256SUMS, so that a changed list is found, too.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from bleuprint.runtime.checksums import CHECKSUM_FILE, REMEDY, read_checksums
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.regular_files import read_bytes, sha256_of

CARD = "README.md"
# How the model card names the SHA-256 of the list of checksums.
_LIST_SHA256_IN_CARD = re.compile(rb"SHA-256 of `SHA256SUMS`: `([0-9a-f]{64})`")
# Git and Hugging Face add these to a folder that is published there.
_ADDED_BY_HOSTS = (".git", ".gitattributes")


def check_release(folder: Path) -> None:
    """Check that all files of a release are unchanged, by their SHA-256.

    The file SHA256SUMS lists the SHA-256 of the files. The model card, README.md, contains the
    SHA-256 of SHA256SUMS itself, so that nobody can change a file and its line in the list. A
    folder with neither, such as an ordinary project, is not a release and is not checked.

    Args:
        folder: The folder, which may be a release.

    Raises:
        UserError: A file of the release was changed, added or removed, or is a link.
    """
    reports = folder / "reports"
    if reports.is_symlink():
        raise UserError(f"{reports} is a link to {reports.readlink()}. Name that folder instead")
    checksum_file = folder / CHECKSUM_FILE
    card = folder / CARD
    sha256_of_list = _sha256_of_list_in(card)
    # `lexists` is also true for a broken link, which is refused below when the file is read.
    if not os.path.lexists(checksum_file):
        if sha256_of_list is not None:
            raise UserError(f"{checksum_file}: no such file, although {card} names it. {REMEDY}")
        return
    checksums = read_checksums(checksum_file)
    _check_checksum_list(checksum_file, checksums, sha256_of_list)
    _check_nothing_added(folder, checksums)
    for name, sha256 in checksums.items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != sha256:
            raise UserError(f"{path} is missing or differs from {CHECKSUM_FILE}. {REMEDY}")


def _check_checksum_list(
    checksum_file: Path, checksums: dict[str, str], sha256_of_list: str | None
) -> None:
    """Check that nobody has changed the list of checksums, by the SHA-256 in the model card.

    Args:
        checksum_file: The path of the list, SHA256SUMS.
        checksums: The SHA-256 of each file in the list.
        sha256_of_list: The SHA-256 of the list itself, from the model card README.md; None if the
            card contains none. Then the list must contain the SHA-256 of the card instead.

    Raises:
        DamagedFile: The list was changed, or neither file contains the SHA-256 of the other.
    """
    if sha256_of_list is None:
        if CARD not in checksums:
            reason = f"it does not list {CARD}, and {CARD} does not name it"
            raise DamagedFile(checksum_file, reason, REMEDY)
    elif sha256_of(checksum_file) != sha256_of_list:
        raise DamagedFile(checksum_file, f"its SHA-256 differs from the one in {CARD}", REMEDY)


def _sha256_of_list_in(card: Path) -> str | None:
    """Return the SHA-256 of the list of checksums, which a model card contains.

    Args:
        card: The path of the model card, README.md.

    Returns:
        The SHA-256; None if there is no model card, or if it contains none.
    """
    if not card.is_file():
        return None
    match = _LIST_SHA256_IN_CARD.search(read_bytes(card))
    if match is None:
        return None
    return match[1].decode()


def _check_nothing_added(folder: Path, checksums: dict[str, str]) -> None:
    """Raise UserError if somebody has added a file to a release.

    Args:
        folder: The folder of the release.
        checksums: The SHA-256 of each file of the release, from the file SHA256SUMS.
    """
    # The list contains neither itself nor the model card.
    expected_names = {*checksums, CHECKSUM_FILE, CARD}
    for path in _release_files(folder):
        name = path.relative_to(folder).as_posix()
        if name not in expected_names:
            raise UserError(f"{path}: {CHECKSUM_FILE} does not list this file. Remove it")


def _release_files(folder: Path) -> Iterator[Path]:
    """Yield all files of a release, except those that a host such as GitHub adds."""
    for path in sorted(folder.iterdir()):
        if path.name not in _ADDED_BY_HOSTS:
            yield from _files_below(path)


def _files_below(path: Path) -> Iterator[Path]:
    """Yield all files in a folder and in the folders below it; for a file, the file itself.

    Raises:
        UserError: An item is something else: a link to a folder, a broken link, a pipe or a device.
    """
    if path.is_symlink() and not path.is_file():
        raise UserError(f"{path} is a link to {path.readlink()}, not a file. {REMEDY}")
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        for inner_path in sorted(path.iterdir()):
            yield from _files_below(inner_path)
    elif stat.S_ISREG(mode):
        yield path
    else:
        raise UserError(f"{path} is a pipe or device, not a file. {REMEDY}")
