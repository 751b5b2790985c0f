"""Give a file a second name instead of copying it, so that it takes no further room on the disk."""

import os
import shutil
from contextlib import suppress
from pathlib import Path


def link_or_copy(path: Path, link: Path) -> None:
    """Make a file available under a second path, without copying its content if possible.

    Both paths are then hard links to the same file: they keep its modification time and its rights,
    and the content stays until both are removed. To write to a linked file in place would change
    the content under both paths. Replacing a file by another, as `atomic_file` and DVC do, does
    not.

    If hard links are not possible, the file is copied: the paths are on different file systems, the
    file system has no hard links, or the file belongs to another user.

    Args:
        path: The file. If it is a symbolic link, as DVC may make them to its cache, the file to
            which it points gets the second path.
        link: The second path, which must not exist.

    Raises:
        OSError: The operating system reports an error, such as a full disk.
    """
    with suppress(OSError):
        # `resolve`, because Linux would otherwise link the symbolic link itself.
        os.link(path.resolve(), link)
        return
    shutil.copyfile(path, link)
