"""SHA256SUMS: a list of files with their SHA-256, in the format of the command `sha256sum`."""

import os
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.regular_files import read_bytes, sha256_of

CHECKSUM_FILE = "SHA256SUMS"
REMEDY = "Get the release again"
# A line "HASH  NAME", "HASH *NAME" (of --binary), or "HASH NAME" (of the BSDs). A backslash before
# the hash says that the name is escaped.
_LINE = re.compile(
    r"[ \t]*(?P<backslash>\\?)(?P<sha256>[0-9a-fA-F]{64})[ \t](?:[ *])?(?P<name>.+)", re.DOTALL
)
# A line "SHA256 (NAME) = HASH", of --tag.
_TAGGED_LINE = re.compile(
    r"[ \t]*(?P<backslash>\\?)SHA256 \((?P<name>.+)\) = (?P<sha256>[0-9a-fA-F]{64})", re.DOTALL
)
# How a name is escaped. The backslash comes first: the other escapes bring new backslashes.
_ESCAPES = {"\\": r"\\", "\n": r"\n", "\r": r"\r"}
_CHARACTERS = {escape: character for character, escape in _ESCAPES.items()}


class FileChecksum(NamedTuple):
    """One entry of a list: the name of a file as it is written, and its SHA-256."""

    name: str
    sha256: str


def read_checksums(path: Path) -> dict[str, str]:
    """Read a list of checksums, as the command `sha256sum --check` does.

    Empty lines and lines with `#` at the start are skipped, and a hash may have capital letters.
    File names may contain bytes that are not UTF-8; they are decoded as `os.fsdecode` does.

    Returns:
        The SHA-256 of each file in lower-case hexadecimal digits, by its path relative to the
        folder of the list.

    Raises:
        FileNotFoundError: There is no such file.
        UserError: The path is not a regular file, or a line is not a checksum, names a file outside
            the folder, or contradicts an earlier line about the same file.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(os.fsdecode(read_bytes(path)).split("\n"), 1):
        text = line.removesuffix("\r")
        if not text or text.startswith("#"):
            continue
        entry = _parse_line(text)
        if entry is None:
            raise DamagedFile(path, f"line {number} is not a SHA-256 and a name", REMEDY)
        if not _is_inside_folder(entry.name):
            problem = f"line {number} names {entry.name!r}, which is not inside the folder"
            raise DamagedFile(path, problem, REMEDY)
        # "./model" and "model" are the same file.
        file = str(PurePosixPath(entry.name))
        known_sha256 = sums.setdefault(file, entry.sha256)
        if known_sha256 != entry.sha256:
            problem = f"line {number} is a second checksum of {entry.name!r}"
            raise DamagedFile(path, problem, REMEDY)
    return sums


def _is_inside_folder(name: str) -> bool:
    """Return whether a file name in a list of checksums is inside the folder of the list.

    A list from an untrusted source could name `/etc/passwd` or `../other`.
    """
    file = PurePosixPath(name)
    return not file.is_absolute() and ".." not in file.parts and "\0" not in name


def _parse_line(text: str) -> FileChecksum | None:
    """Read one line of a list of checksums, such as `HASH  NAME` or `SHA256 (NAME) = HASH`.

    A backslash before the hash says that line breaks and backslashes in the name are escaped.

    Returns:
        The name and its hash; None if the line has no form that sha256sum writes.
    """
    match = _TAGGED_LINE.fullmatch(text) or _LINE.fullmatch(text)
    if match is None:
        return None
    name = match["name"]
    if match["backslash"]:
        # Replace each escape by its character.
        name = re.sub(r"\\[\\nr]", lambda escape: _CHARACTERS[escape[0]], name)
    return FileChecksum(name, match["sha256"].lower())


def format_checksums(folder: Path, excluded_names: tuple[str, ...] = ()) -> str:
    """Return a list of all files in a folder with their SHA-256, as `sha256sum` writes it.

    Each line has the form `HASH  NAME`. Line breaks and backslashes in a name are escaped, and the
    line then begins with a backslash.

    Args:
        folder: The folder; files in its subfolders are listed, too.
        excluded_names: Files that are not listed, by their path relative to the folder.
    """
    files = [path for path in folder.rglob("*") if path.is_file()]
    lines = []
    for path in sorted(files):
        name = path.relative_to(folder).as_posix()
        if name in excluded_names:
            continue
        escaped_name = name
        for character, escape in _ESCAPES.items():
            escaped_name = escaped_name.replace(character, escape)
        # A backslash before the hash tells that the name contains escapes.
        backslash = "\\" if escaped_name != name else ""
        lines.append(f"{backslash}{sha256_of(path)}  {escaped_name}\n")
    return "".join(lines)
