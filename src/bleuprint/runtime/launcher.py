"""The tie between a training process and the launcher that started it.

This module does not import torch, so that a process is tied before it loads what takes seconds.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime.errors import LAUNCHER_VARIABLE

# The number of an operation of Linux's system call prctl: which signal the kernel sends to this
# process when its parent dies.
_PR_SET_PDEATHSIG = 1
# The states of a process in /proc: zombie (ended, and its parent has not noticed) and dead.
_ENDED_STATES = ("Z", "X")


def end_with_launcher() -> None:
    """Let Linux kill this training process when the launcher that started it is killed.

    A launcher normally ends its processes itself, but it cannot if it is killed by SIGKILL. The
    launcher is ours or torchrun. In a process without a launcher, this function does nothing.
    """
    if LAUNCHER_VARIABLE not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    import ctypes  # Imported here, because few processes need it.

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    launcher_id = os.environ.get(LAUNCHER_VARIABLE, "")
    if launcher_id.isdecimal() and not _is_alive(int(launcher_id)):
        # The launcher was killed before the call of prctl, which then has no effect.
        os.kill(os.getpid(), signal.SIGKILL)


def _is_alive(process_id: int) -> bool:
    """Return whether a process exists and has not ended, from what Linux tells in /proc."""
    with suppress(OSError):
        status = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
        # The state is the first field after the program's name, which is in parentheses and may
        # itself contain parentheses and spaces.
        state = status.rpartition(")")[2].split()[0]
        return state not in _ENDED_STATES
    return False
