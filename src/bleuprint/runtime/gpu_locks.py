"""Share the GPUs of a machine among the stages, runs and people that use it.

A process that is about to compute on GPUs calls `hold_gpus`. It locks each GPU that it uses, and
hides all others from itself and from the processes that it starts (CUDA_VISIBLE_DEVICES). The
kernel releases a lock when the process ends, also after a kill. This module does not import torch,
since the runners of stages need it, too.
"""

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bleuprint.runtime.environment import gpu_limit
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.locks import flock_holder
from bleuprint.runtime.visible_gpus import VISIBLE_GPUS, are_parts_of_gpus, visible_gpus
from bleuprint.runtime.wording import counted, join_with_and

# All users of the machine lock a GPU by the same file. So the folder does not depend on TMPDIR,
# which may be a user's own.
_LOCK_FOLDER = Path("/tmp/bleuprint-gpus")
# Every user may add files to the folder, but remove only their own, as in /tmp itself.
_FOLDER_MODE = 0o1777
# Every user may lock every file: flock(2) needs no more than the right to read it.
_FILE_MODE = 0o666
# A process that waits for a GPU looks this often whether one is free.
_POLL_SECONDS = 0.5


@contextmanager
def hold_gpus(max_gpus: int | None = None) -> Iterator[list[str]]:
    """Hold GPUs for the time of a `with` block, and make the others invisible to this process.

    The process takes the GPUs that no other process of bleuprint holds, up to a limit. If there are
    none, it waits for one. CUDA reads CUDA_VISIBLE_DEVICES when it starts, so the block must be
    entered before the first use of a GPU.

    Args:
        max_gpus: The highest number of GPUs to take, such as 1 for a stage that uses no more; None
            for all. The environment variable BLEUPRINT_GPUS limits it further.

    Yields:
        The names of the GPUs, in the order in which they were visible; an empty list if this
        process may use none. Then it computes on the CPU.

    Raises:
        UserError: BLEUPRINT_GPUS is not a number, CUDA_VISIBLE_DEVICES names a GPU twice, or the
            folder of the locks cannot be used.
    """
    visible_names = visible_gpus()
    limit = _highest_count(visible_names, max_gpus)
    with ExitStack() as locks:
        held_names = _lock_free_gpus(visible_names, limit, locks)
        was_waiting = False
        while visible_names and not held_names:
            if not was_waiting:
                print_message(_describe_wait(visible_names), "note")
                was_waiting = True
            time.sleep(_POLL_SECONDS)
            held_names = _lock_free_gpus(visible_names, limit, locks)
        if not held_names:
            yield []
            return
        before = os.environ.get(VISIBLE_GPUS)
        os.environ[VISIBLE_GPUS] = ",".join(held_names)
        try:
            yield held_names
        finally:
            _set_or_remove(VISIBLE_GPUS, before)


def _highest_count(names: Sequence[str], max_gpus: int | None) -> int:
    """Return the highest number of GPUs that this process takes.

    Args:
        names: The GPUs that this process may use.
        max_gpus: How many GPUs the caller can use; None for any number.

    Raises:
        UserError: The environment variable BLEUPRINT_GPUS is not a number.
    """
    limits = [len(names), max_gpus, gpu_limit()]
    if are_parts_of_gpus():
        limits.append(1)
    return min(limit for limit in limits if limit is not None)


def _set_or_remove(variable: str, value: str | None) -> None:
    """Set an environment variable; with None, remove it."""
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def _lock_free_gpus(names: Sequence[str], limit: int, locks: ExitStack) -> list[str]:
    """Lock the GPUs that no other process has locked, up to a limit.

    Args:
        names: The GPUs that this process may use.
        limit: The highest number of GPUs to lock.
        locks: The context that releases the locks at its end.

    Returns:
        The names of the GPUs that are locked now, in the order of `names`.
    """
    held_names = list[str]()
    for name in names:
        if len(held_names) == limit:
            break
        descriptor = _open_lock_file(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        locks.callback(os.close, descriptor)
        held_names.append(name)
    return held_names


def _open_lock_file(gpu_name: str) -> int:
    """Open the file by which a GPU is locked, and return its descriptor; create it if needed.

    Raises:
        UserError: The file cannot be opened.
    """
    path = _lock_file(gpu_name)
    # Without a umask, folder and file have their modes from the beginning. If the modes were
    # changed afterwards, other users would be refused in between, or forever after a kill.
    umask = os.umask(0)
    try:
        with suppress(FileExistsError):
            _LOCK_FOLDER.mkdir(_FOLDER_MODE)
        # Linux lets nobody open another user's file in such a folder with O_CREAT
        # (fs.protected_regular), so this is tried only if the file does not exist.
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY)
        return os.open(path, os.O_RDONLY | os.O_CREAT, _FILE_MODE)
    except OSError as error:
        raise UserError(
            f"{path}: cannot lock a GPU: {error.strerror}. Make the folder writable for all: "
            f"chmod 1777 {_LOCK_FOLDER}"
        ) from error
    finally:
        os.umask(umask)


def _lock_file(gpu_name: str) -> Path:
    """Return the path of the file by which a GPU is locked."""
    return _LOCK_FOLDER / f"{gpu_name.replace('/', '-')}.lock"


def _describe_wait(names: Sequence[str]) -> str:
    """Return the note that this process waits for a GPU, with the processes that hold them."""
    holders = list[str]()
    for name in names:
        process_id = flock_holder(_lock_file(name))
        if process_id is not None and str(process_id) not in holders:
            holders.append(str(process_id))
    gpus = counted(len(names), "GPU")
    text = f"waiting for a GPU: other runs of bleuprint hold all of the {gpus}"
    if len(names) == 1:
        text = "waiting for the GPU: another run of bleuprint holds it"
    if holders:
        noun = "process" if len(holders) == 1 else "processes"
        text = f"{text} ({noun} {join_with_and(holders)})"
    return f"{text}. Ctrl-C stops waiting"
