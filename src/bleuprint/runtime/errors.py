"""What a user is told when something is wrong, and how a stage says it."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

# The status of a process that ends because another one, which works with it, is gone.
GONE = os.EX_UNAVAILABLE
# Statuses with which `run` ends, having told why; 2 is that of a command line it cannot read.
TOLD = frozenset({1, 2, os.EX_TEMPFAIL, 130, 128 + signal.SIGPIPE})


class UserError(Exception):
    """A mistake the user can mend: shown as one line, without a traceback.

    The message names the file, the line and the value, as far as there are any.
    """


class Interrupted(Exception):
    """The process was asked to stop (SIGTERM) and has saved what it had: not finished."""


def run(main: Callable[[], None]) -> NoReturn:
    """Run a command's `main` and leave the process with the status that belongs to its end.

    0: finished; 1: a mistake of the user's or of the machine's, told in one line;
    75 (EX_TEMPFAIL): told to stop, state saved, run it again; 130: Ctrl-C;
    69 (EX_UNAVAILABLE): another process that trains with this one has failed.
    Anything else is a bug of ours and keeps its traceback.
    """
    try:
        main()
        sys.stdout.flush()
    except UserError as error:
        _end(1, str(error))
    except Interrupted as error:
        _end(os.EX_TEMPFAIL, str(error))
    except KeyboardInterrupt:
        _end(130, "interrupted")
    except BrokenPipeError:
        # who read our output wants no more of it; Python would complain once again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _end(128 + signal.SIGPIPE)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
            where = f": {error.filename}" if error.filename else ""
            _end(1, f"{error.strerror}{where}")
        if _Company.verdict is None:
            raise
        status, tells = _Company.verdict(1, True)
        if tells:
            sys.excepthook(type(error), error, error.__traceback__)
        _leave(status)
    _end(0)


def consult(verdict: Callable[[int, bool], tuple[int, bool]]) -> None:
    """Ask `verdict` before this process ends, since others work with it and may end too.

    It is given the status and whether it comes of a bug, and returns the status to end with and
    whether it is this process that tells why.
    """
    _Company.verdict = staticmethod(verdict)


def say(message: str, kind: str = "error") -> None:
    """Tell the user in one line what is wrong."""
    # on a terminal another process's bar may be in the way
    clear = "\r\x1b[K" if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else ""
    print(f"{clear}bleuprint: {kind}: {' '.join(message.split())}", file=sys.stderr, flush=True)


# What the machine, not our code, is to blame for: a full disk, a quota, a read-only or
# forbidden place, a missing file.
_MACHINE_ERRORS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EEXIST,
        errno.EIO,
    }
)


class _Company:
    """The processes that work with this one, as far as its end concerns them."""

    verdict: Callable[[int, bool], tuple[int, bool]] | None = None


def _end(status: int, message: str = "") -> NoReturn:
    if _Company.verdict is None:
        # Processes that have not met yet meet the same mistakes: the first of a machine tells.
        local = os.environ.get("LOCAL_RANK") or os.environ.get("SLURM_LOCALID", "0")
        if message and local == "0":
            say(message)
        sys.exit(status)
    status, tells = _Company.verdict(status, False)
    if message and tells:
        say(message)
    _leave(status)


def _leave(status: int) -> NoReturn:
    if status == 0:
        sys.exit(0)
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    # At once: an orderly end would wait for processes that are gone, or complain of them.
    os._exit(status)
