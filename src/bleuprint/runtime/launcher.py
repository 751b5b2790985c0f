"""The tie between a process and the launcher that started it: it ends when the launcher is killed.

Without torch, so that a process is tied before it loads what takes seconds.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime.errors import LAUNCHER_VARIABLE

_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def end_with_launcher() -> None:
    """Let the kernel end this process when its launcher, ours or torchrun, is killed.

    Launchers end their processes themselves, except when SIGKILL leaves them no time to.
    """
    if LAUNCHER_VARIABLE not in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    import ctypes  # imported here: few processes need it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    launcher = os.environ.get(LAUNCHER_VARIABLE, "")
    if launcher.isdecimal() and not _is_alive(int(launcher)):  # killed before the call above
        os.kill(os.getpid(), signal.SIGKILL)


def _is_alive(process: int) -> bool:
    """Whether a process runs: it exists, and is not a zombie."""
    with suppress(OSError):
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return status.rpartition(")")[2].split()[0] not in ("Z", "X")
    return False
