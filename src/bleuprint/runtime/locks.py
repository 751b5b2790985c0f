"""Locks between processes that the kernel releases when their process ends, by flock(2)."""

import errno
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import filelock

from bleuprint.runtime.errors import UserError, print_message

_MISSING = errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP


def flock_holder(path: Path) -> int | None:
    """Return the id of the process of this machine that has locked a file; None if none has."""
    with suppress(OSError):  # proc_locks(5), of Linux
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="utf-8")
        found = re.search(rf"FLOCK .* ([1-9]\d*) \S+:{inode} ", locks)
        return int(found[1]) if found else None
    return None


class FileLock(filelock.FileLock):
    """A lock on a file.

    Raises UserError on a file system without locks. filelock would take the existence of the file
    for the lock there, and a killed process leaves the file behind.
    """

    def __init__(self, lock_file: str | Path, timeout: float = -1) -> None:
        """`timeout`: seconds to wait; -1: without a limit."""
        super().__init__(lock_file, timeout=timeout, fallback_to_soft=False)

    def acquire_or_notify(self, held: str, wait: bool = True) -> AbstractContextManager[object]:
        """Acquire the lock until the end of a `with`; if another process has it, say so and wait.

        `held`: what to say. Without `wait`, it is raised as a UserError instead.
        """
        try:
            return self.acquire(timeout=0)
        except filelock.Timeout:
            message = f"{held}{self._advice()}"
        if not wait:
            raise UserError(f"{message}; when it has ended, run the same command again")
        print_message(f"{message}: waiting for it", "note")
        return self.acquire()

    def _advice(self) -> str:
        """How to end the process that has the lock, if it is known: one of this machine."""
        process = flock_holder(Path(self.lock_file))
        return f" (kill {process} makes it save and end)" if process is not None else ""

    def _acquire(self) -> None:
        try:
            super()._acquire()
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            folder = Path(self.lock_file).absolute().parent
            raise UserError(
                f"{folder}: its file system has no locks (flock: {error.strerror}): move the "
                "project to one that has, or mount this one with them (NFS: with lockd, or "
                "option local_lock=flock if one machine uses it)"
            ) from error
