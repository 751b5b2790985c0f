"""DVC's view of a project in which one file has another content than on disk.

`bleuprint plan` and a dry run of Snakemake compare the settings of now with dvc.lock. They may not
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
        super().__init__()
        self._unwritten_path = os.path.realpath(path)
        self._unwritten_text = text

    def open(self, path: str, mode: str = "r", **options: Any) -> Any:
        """Open a file; for reading text, the replaced one with its replaced content."""
        if mode in ("r", "rt") and os.path.realpath(path) == self._unwritten_path:
            return io.StringIO(self._unwritten_text)
        return super().open(path, mode, **options)

    def exists(self, path: Any, *arguments: Any, **options: Any) -> Any:
        """Return whether a path exists; of several paths, whether each does."""
        if isinstance(path, str) and os.path.realpath(path) == self._unwritten_path:
            return True
        return super().exists(path, *arguments, **options)
