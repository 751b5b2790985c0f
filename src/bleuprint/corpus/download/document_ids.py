"""The documents of test sets: a file of ids beside the downloaded text, one for each of its lines.

Test sets are copied byte for byte by the stages from clean to split, so that the file holds there,
too; it stays with the downloaded text, and no training depends on it.
"""

from collections.abc import Sequence

from bleuprint.config import paths
from bleuprint.runtime.errors import say
from bleuprint.text.parallel import TextFolder


def write_document_ids(folder: TextFolder, name: str, ids: Sequence[str]) -> None:
    """Write the ids of a set, if its lines have any; not if some have and others have not."""
    if not any(ids):
        return
    lines, known = folder.count(name), sum(map(bool, ids))
    if known < lines:
        say(f"{name}: {lines - known} of {lines} lines are of no document: none is used", "note")
        return
    text = "".join(f"{' '.join(id.split(chr(10)))}\n" for id in ids)
    paths.document_ids(folder.path, name).write_bytes(text.encode())
