"""SHA256SUMS: a list of files with their SHA-256, as sha256sum(1) of coreutils writes and reads."""

import os
import re
from pathlib import Path, PurePosixPath

from bleuprint.runtime.files import DamagedFile, read_bytes, sha256_of

CHECKSUM_FILE = "SHA256SUMS"
REMEDY = "get the release again"
# "HASH  NAME", "HASH *NAME" (of --binary), "HASH NAME" (of the BSDs); a backslash in front says
# that the name is escaped.
_LINE = re.compile(r"[ \t]*(\\?)([0-9a-fA-F]{64})[ \t](?:[ *])?(.+)", re.DOTALL)
# "SHA256 (NAME) = HASH", of --tag.
_TAGGED = re.compile(r"[ \t]*(\\?)SHA256 \((.+)\) = ([0-9a-fA-F]{64})", re.DOTALL)
_ESCAPES = {r"\\": "\\", r"\n": "\n", r"\r": "\r"}


def read_checksums(path: Path) -> dict[str, str]:
    """Read a list of checksums.

    As for `sha256sum --check`, empty lines and lines with `#` at the start count for nothing, and
    capitals are equal to small letters. Bytes of names that are not UTF-8 are as in `os.fsdecode`.

    Returns:
        The SHA-256 of each file in small hexadecimal digits, by its path relative to the folder.

    Raises:
        FileNotFoundError: if there is no such file.
        UserError: if it is not a regular file, or if a line is no checksum, names a file outside
            the folder, or gives a file another checksum than a line before.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(os.fsdecode(read_bytes(path)).split("\n"), 1):
        text = line.removesuffix("\r")
        if not text or text.startswith("#"):
            continue
        if found := _TAGGED.fullmatch(text):
            escaped, name, digest = found.groups()
        elif found := _LINE.fullmatch(text):
            escaped, digest, name = found.groups()
        else:
            raise DamagedFile(path, f"line {number} is not a SHA-256 and a name", REMEDY)
        if escaped:
            name = re.sub(r"\\[\\nr]", lambda escape: _ESCAPES[escape[0]], name)
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or "\0" in name:
            problem = f"line {number} names {name!r}, which is not inside the folder"
            raise DamagedFile(path, problem, REMEDY)
        digest = digest.lower()
        if sums.setdefault(str(place), digest) != digest:
            raise DamagedFile(path, f"line {number} is a second checksum of {name!r}", REMEDY)
    return sums


def format_checksums(folder: Path, left_out: tuple[str, ...] = ()) -> str:
    """The text of a SHA256SUMS of all files in a folder, without those of the names `left_out`."""
    lines = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name in left_out:
            continue
        escaped = name
        for escape, character in _ESCAPES.items():
            escaped = escaped.replace(character, escape)
        mark = "\\" if escaped != name else ""
        lines.append(f"{mark}{sha256_of(path)}  {escaped}\n")
    return "".join(lines)
