"""What a user is told when something is wrong, and how a stage says it."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn


class UserError(Exception):
    """A mistake the user can mend: shown as one line, without a traceback.

    The message names the file, the line and the value, as far as there are any.
    """


class Interrupted(Exception):
    """The process was asked to stop (SIGTERM) and has saved what it had: not finished."""


def run(main: Callable[[], None]) -> NoReturn:
    """Run a command's `main` and leave the process with the status that belongs to its end.

    0: finished; 1: a mistake of the user's or of the machine's, told in one line;
    75 (EX_TEMPFAIL): told to stop, state saved, run it again; 130: Ctrl-C.
    Anything else is a bug of ours and keeps its traceback.
    """
    try:
        main()
        sys.stdout.flush()
    except UserError as error:
        _say(str(error))
        sys.exit(1)
    except Interrupted as error:
        _say(str(error))
        sys.exit(os.EX_TEMPFAIL)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # who read our output wants no more of it; Python would complain once again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        if error.errno not in _MACHINE_ERRORS:
            raise
        where = f": {error.filename}" if error.filename else ""
        _say(f"{error.strerror}{where}")
        sys.exit(1)
    sys.exit(0)


# What the machine, not our code, is to blame for: a full disk, a quota, a read-only or
# forbidden place, a missing file.
_MACHINE_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.EIO}
)


def _say(message: str) -> None:
    if os.environ.get("RANK", "0") != "0":
        return  # of several processes that train together, the first one speaks
    print(f"bleuprint: error: {' '.join(message.split())}", file=sys.stderr, flush=True)
