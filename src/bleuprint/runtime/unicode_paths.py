"""Find files whose names are written with other Unicode characters than the user typed."""

import unicodedata
from contextlib import suppress
from pathlib import Path


def path_on_disk(path: Path) -> Path:
    """Find a file whose name on the disk is written with other Unicode characters than the path.

    A letter with an accent has two forms in Unicode: one character (`ü`), or a letter and an accent
    (`u` and U+0308), as macOS writes names. A user who types one form means the file with the
    other.

    Returns:
        The path of the file whose name differs only in these forms. If `path` itself exists, or if
        there is no such file or more than one, `path` is returned.
    """
    if path.exists() or path.name == "" or str(path).isascii():
        return path
    # The names of the folders may be written in the other form, too.
    folder = path_on_disk(path.parent)
    composed_name = unicodedata.normalize("NFC", path.name)
    equal_paths = []
    with suppress(OSError):
        for neighbor in folder.iterdir():
            if unicodedata.normalize("NFC", neighbor.name) == composed_name:
                equal_paths.append(neighbor)
    return equal_paths[0] if len(equal_paths) == 1 else path
