"""Write files and folders so that they appear only when they are complete.

`atomic_file` and `atomic_folder` write under a temporary name and rename at the end. If a process
is killed while it writes, nothing is left that looks finished. `write_text` writes a whole text.
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
    `path`. If it raises an exception, the temporary file is removed, and `path` is left unchanged.

    Yields:
        The temporary path.
    """
    with name_in_errors(path):
        partial_path = _temporary_path(path)
        try:
            yield partial_path
            _flush_to_disk(partial_path)
            partial_path.replace(path)
            # The name of a file is stored in its folder, so the folder must be flushed, too.
            _flush_to_disk(path.parent)
        finally:
            _remove(partial_path)  # After a success, there is nothing left to remove.


def write_text(path: Path, text: str) -> None:
    r"""Write a text in UTF-8 to a file that appears only when it is complete.

    Lines end in \n on every operating system; in Python's text mode, Windows would end them in
    \r\n.

    Args:
        path: The file to write.
        text: The whole content.

    Raises:
        OSError: The operating system reports an error, such as a full disk.
    """
    with atomic_file(path) as partial_path:
        partial_path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Write a folder so that it appears only when it is complete.

    The `with` block fills a temporary folder. If it succeeds, the temporary folder replaces what is
    at `path`. If it raises an exception, `path` is left unchanged. If `path` is a symbolic link,
    the link is replaced, and the folder to which it points is kept.

    Operating systems cannot replace a folder that has files by a single rename. So the old folder
    is renamed first. If the process is killed between the two renames, the next call for this path
    puts the old folder back.

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
            # `lexists` is also true for a symbolic link that leads nowhere.
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
    """Return a temporary path beside a file or folder; remove what killed processes have left.

    The path has the name `.NAME.partial-PROCESS`, with the id of this process. A process that was
    killed may have left files under such names, which are removed. But if it was killed while it
    replaced a folder by a new one (see `atomic_folder`), the old folder is renamed back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name_pattern = re.compile(rf".*\.partial-(\d{{1,10}})(?:{re.escape(_REPLACED_SUFFIX)})?")
    for leftover_path in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        match = name_pattern.fullmatch(leftover_path.name)
        if match is None:
            continue  # Another program, such as an editor, has written this file.
        if _is_other_running_process(int(match[1])):
            continue  # The process is writing to it just now.
        if leftover_path.name.endswith(_REPLACED_SUFFIX) and not path.exists():
            leftover_path.rename(path)
        else:
            _remove(leftover_path)
    return path.with_name(f".{path.name}.partial-{os.getpid()}")


def _is_other_running_process(process_id: int) -> bool:
    """Return whether another process with this id is running.

    The operating system uses ids again. So an earlier process may have had the id of this one, and
    this process itself does not count.
    """
    if process_id == os.getpid():
        return False
    # Imported here, because it is hardly ever needed and all stages import this module.
    import psutil

    return bool(psutil.pid_exists(process_id))


def _remove(path: Path) -> None:
    """Remove a file, link or folder if it exists, and ignore errors.

    A leftover that cannot be removed now is removed when the same path is written the next time.
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
