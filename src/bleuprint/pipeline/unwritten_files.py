"""DVC's view of a project in which some files have other contents than on disk.

`bleuprint plan` and a dry run of Snakemake compare the settings of now with dvc.lock. They may not
write reports/resolved.json and .dvc/rows.json, which the next run will write.
"""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dvc.fs import LocalFileSystem


class UnwrittenFiles(LocalFileSystem):  # type: ignore[misc]
    """The local file system, with texts in place of the contents of some files.

    Only what DVC calls to read settings is replaced: `open` for reading, and `exists`. Hashes are
    those of the files on disk.
    """

    def __init__(self, texts: Mapping[Path, str]) -> None:
        super().__init__()
        self._texts = {os.path.realpath(path): text for path, text in texts.items()}

    def open(self, path: str, mode: str = "r", **options: Any) -> Any:
        """Open a file; one with a replaced content for reading text."""
        text = self._texts.get(os.path.realpath(path))
        if text is not None and mode in ("r", "rt"):
            return io.StringIO(text)
        return super().open(path, mode, **options)

    def exists(self, path: Any, *arguments: Any, **options: Any) -> Any:
        """Whether a path exists; of several paths, whether each does."""
        if isinstance(path, str) and os.path.realpath(path) in self._texts:
            return True
        return super().exists(path, *arguments, **options)
