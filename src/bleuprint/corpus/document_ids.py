"""The documents of test sets: a file of ids beside the downloaded text, one for each of its lines.

Test sets are copied byte for byte by the stages from clean to split, so that the file holds there,
too; it stays in the downloaded text, and no training depends on it.
"""

from collections.abc import Sequence
from pathlib import Path

from bleuprint.runtime.errors import UserError, say
from bleuprint.text.parallel import TextFolder, read_lines


def write_document_ids(folder: TextFolder, name: str, ids: Sequence[str]) -> None:
    """Write the ids of a set, if its lines have any; not if some have and others have not."""
    if not any(ids):
        return
    lines, known = folder.count(name), sum(map(bool, ids))
    if known < lines:
        say(f"{name}: {lines - known} of {lines} lines are of no document: none is used", "note")
        return
    text = "".join(f"{id.replace(chr(10), ' ')}\n" for id in ids)
    _path(folder.path, name).write_bytes(text.encode())


def read_document_ids(folder: TextFolder, name: str, lines: int) -> list[str] | None:
    """The document of each of the `lines` of a set, None if it does not say them."""
    path = _path(folder.path, name)
    if not path.exists():
        return None
    ids = list(read_lines(path))
    if len(ids) != lines:
        raise UserError(f"{path} has {len(ids)} lines and the test set has {lines}; run: dvc repro")
    return ids


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.documents"
