"""Pipes, sockets and devices below folders that other programs read, which would wait for ever."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from bleuprint.runtime.errors import UserError

# The folders of a project whose files DVC hashes.
HASHED = ("corpora", "data", "inputs", "models", "reports", "results", "src", "stages", "starts")


def check_no_special_files(root: Path, names: Iterable[str] = HASHED) -> None:
    """Raise UserError at the first pipe, socket or device below folders of `root`.

    Links to folders are not followed.
    """
    for name in names:
        for folder, _, files in os.walk(root / name):
            for file in files:
                path = Path(folder, file)
                # a link to nothing is left to its reader
                if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                    raise UserError(
                        f"{path}: a pipe or device, which DVC would wait for: remove it"
                    )
