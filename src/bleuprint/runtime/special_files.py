"""Pipes, sockets and devices in folders that DVC reads: it would wait for them for ever."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from bleuprint.runtime.errors import UserError

# The folders of a project whose files DVC hashes.
HASHED = ("corpora", "data", "inputs", "models", "reports", "results", "src", "stages", "starts")


def check_no_special_files(root: Path, folder_names: Iterable[str] = HASHED) -> None:
    """Raise UserError if a folder that DVC reads contains a pipe, socket or device.

    DVC reads all files in these folders, and would wait for such a file for ever. Links to folders
    are not followed.

    Args:
        root: The project's root.
        folder_names: The folders, relative to the root; one that does not exist is skipped.

    Raises:
        UserError: A folder contains a pipe, socket or device; the message names it.
    """
    for folder_name in folder_names:
        for folder, _folders, files in os.walk(root / folder_name):
            for file in files:
                path = Path(folder, file)
                # `exists` is False for a broken link, which no program waits for.
                if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                    raise UserError(
                        f"{path}: a pipe or device, for which DVC would wait. Remove it"
                    )
