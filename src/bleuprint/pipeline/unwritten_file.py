"""Shows DVC another content of one file than the one on disk.

`bleuprint plan` and a dry run of Snakemake compare the present settings with dvc.lock, but must not
write reports/resolved.json, which the next run will write.
"""

import io
import os
from pathlib import Path
from typing import Any

from dvc.fs import LocalFileSystem


class UnwrittenFile(LocalFileSystem):  # type: ignore[misc]
    """The local file system, with `text` in place of the content of the file at `path`.

    Only what DVC calls to read settings is replaced: `open` for reading, and `exists`. Hashes are
    computed from the files on disk.
    """

    def __init__(self, path: Path, text: str) -> None:
        """Create a file system in which one file seems to have another content than on disk.

        With it, DVC can be asked what it would do after a file is written, without writing it.

        Args:
            path: The path of the file; it need not exist on disk.
            text: The content that DVC reads in place of the real one.
        """
        super().__init__()
        self._unwritten_path = os.path.realpath(path)
        self._unwritten_text = text

    def open(self, path: str, mode: str = "r", **options: Any) -> Any:
        """Open a file; if it is the replaced one and opened for reading, open its replaced text."""
        if mode in ("r", "rt") and os.path.realpath(path) == self._unwritten_path:
            return io.StringIO(self._unwritten_text)
        return super().open(path, mode, **options)

    def exists(self, path: Any, *arguments: Any, **options: Any) -> Any:
        """Return whether a path exists; of several paths, whether each does."""
        if isinstance(path, str) and os.path.realpath(path) == self._unwritten_path:
            return True
        return super().exists(path, *arguments, **options)
