"""Locks between processes, which the kernel releases when their process ends: flock(2)."""

import errno
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import filelock

from bleuprint.runtime.errors import UserError, print_message

# The errors of a file system that has no locks.
_NO_LOCKS_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def flock_holder(path: Path) -> int | None:
    """Return the id of the process that has locked a file, from Linux's list /proc/locks.

    Returns:
        The process id; None if no process on this machine has locked the file.
    """
    with suppress(OSError):
        inode = path.stat().st_ino
        # A line of proc_locks(5): "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF", with the
        # process, and the device and inode of the file.
        locks = Path("/proc/locks").read_text(encoding="utf-8")
        match = re.search(rf"FLOCK .* ([1-9]\d*) \S+:{inode} ", locks)
        if match is not None:
            return int(match[1])
    return None


class FileLock(filelock.FileLock):
    """A lock on a file, which one process at a time can acquire.

    On a file system without locks it raises UserError. filelock alone would take the existence of
    the file for the lock there, and a killed process leaves the file behind.
    """

    def __init__(self, lock_file: str | Path, timeout: float = -1) -> None:
        """Create the lock, which is not held yet.

        Args:
            lock_file: The file to lock; it is created if it does not exist.
            timeout: The seconds to wait in `acquire`; -1 waits without a limit.
        """
        # On a file system without locks, filelock could use the existence of a file in their place
        # ("soft"). But that file would remain after a kill, and nothing could get the lock again.
        super().__init__(lock_file, timeout=timeout, fallback_to_soft=False)

    def acquire_or_notify(
        self, holder_message: str, should_wait: bool = True
    ) -> AbstractContextManager[object]:
        """Acquire the lock; if another process holds it, print a note and wait for that process.

        Args:
            holder_message: What the other process is, such as "another run of this project".
            should_wait: Whether to wait. If not, an error is raised instead.

        Returns:
            A context for `with`, which releases the lock at its end.

        Raises:
            UserError: Another process has the lock, and `should_wait` is False.
        """
        try:
            return self.acquire(timeout=0)
        except filelock.Timeout:
            message = f"{holder_message}{self._advice_to_end_holder()}"
        if not should_wait:
            raise UserError(f"{message}. When it has ended, run the same command again")
        print_message(f"{message}. Waiting for it", "note")
        return self.acquire()

    def _advice_to_end_holder(self) -> str:
        """Return a remark for a message: how to end the process that holds the lock.

        The text is empty if that process is on another machine, since its id is then unknown.
        """
        process_id = flock_holder(Path(self.lock_file))
        if process_id is None:
            return ""
        return f" (kill {process_id} makes it save and end)"

    def _acquire(self) -> None:
        """Try once to acquire the lock; filelock calls this method.

        Raises:
            UserError: The file system has no locks.
        """
        try:
            super()._acquire()
        except OSError as error:
            if error.errno not in _NO_LOCKS_ERRORS:
                raise
            folder = Path(self.lock_file).absolute().parent
            raise UserError(
                f"{folder}: its file system does not support locks (flock: {error.strerror}). Move "
                "the project to a file system that does, or mount this one with locks (NFS: with "
                "lockd, or with local_lock=flock if only one machine uses it)"
            ) from error
