"""Write files and folders so that they appear only when they are complete.

`atomic_file` and `atomic_folder` write under a temporary name and rename at the end. If a process
is killed while it writes, nothing is left that looks finished.
"""

import errno
import glob
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bleuprint.runtime.file_errors import name_in_errors

# The end of the temporary name of a folder that is being replaced.
_REPLACED_SUFFIX = ".old"


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file so that it appears only when it is complete.

    The `with` block writes to a temporary path. If it succeeds, the temporary file is renamed to
    `path`; if it raises an exception, the temporary file is removed, and `path` stays as it was.

    Yields:
        The temporary path.
    """
    with name_in_errors(path):
        partial_path = _temporary_path(path)
        try:
            yield partial_path
            _flush_to_disk(partial_path)
            partial_path.replace(path)
            # The name of a file is stored in its folder.
            _flush_to_disk(path.parent)
        finally:
            _remove(partial_path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Write a folder so that it appears only when it is complete.

    The `with` block fills a temporary folder. If it succeeds, the temporary folder replaces what is
    at `path`; if it raises an exception, `path` stays as it was. If `path` is a symbolic link, the
    link is replaced, and the folder to which it points is kept.

    A folder with files cannot be replaced by one rename, so the old folder is renamed first. If the
    process is killed between the two renames, the next call puts the old folder back.

    Yields:
        The temporary folder, which is empty.
    """
    with name_in_errors(path):
        partial_folder = _temporary_path(path)
        replaced_folder = partial_folder.with_name(partial_folder.name + _REPLACED_SUFFIX)
        try:
            partial_folder.mkdir()
            yield partial_folder
            _flush_to_disk(partial_folder)
            for inner_path in partial_folder.rglob("*"):
                _flush_to_disk(inner_path)
            if os.path.lexists(path):
                path.rename(replaced_folder)
            partial_folder.rename(path)
            _remove(replaced_folder)
            _flush_to_disk(path.parent)
        finally:
            # If the second rename failed, put the old folder back.
            if os.path.lexists(replaced_folder) and not os.path.lexists(path):
                replaced_folder.rename(path)
            _remove(partial_folder)


def _temporary_path(path: Path) -> Path:
    """Return a temporary path next to a file or folder, after removing what others have left.

    The name has the form `.NAME.partial-PROCESS`. A process that was killed may have left files
    under such names, which are removed. If it was killed after it had renamed an old folder, and
    before the new folder took its place, the old folder gets its name back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name_pattern = re.compile(rf".*\.partial-(\d{{1,10}})(?:{re.escape(_REPLACED_SUFFIX)})?")
    for leftover_path in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        match = name_pattern.fullmatch(leftover_path.name)
        if match is None:
            continue  # Another program, such as an editor, made this file.
        if _is_other_running_process(int(match[1])):
            continue
        if leftover_path.name.endswith(_REPLACED_SUFFIX) and not path.exists():
            leftover_path.rename(path)
        else:
            _remove(leftover_path)
    return path.with_name(f".{path.name}.partial-{os.getpid()}")


def _is_other_running_process(process_id: int) -> bool:
    """Return whether another process with this id is running.

    An earlier process may have had the id of this one, so this process itself does not count.
    """
    if process_id == os.getpid():
        return False
    # Imported here, because it is hardly ever needed and all stages import this module.
    import psutil

    return bool(psutil.pid_exists(process_id))


def _remove(path: Path) -> None:
    """Remove a file, link or folder if it exists, and ignore errors.

    What cannot be removed now is removed when the same output is written the next time.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _flush_to_disk(path: Path) -> None:
    """Wait until a file or folder is on the disk, so that a power failure loses nothing.

    A full disk is noticed here at the latest.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems refuse the call for folders.
        is_refused = error.errno in (errno.EINVAL, errno.EBADF) and path.is_dir()
        if not is_refused:
            raise
    finally:
        os.close(descriptor)
