"""Ends a torchrun that waits in vain, as it may do for a quarter of an hour, or for ever.

    python -m bleuprint.runtime.distributed.watch HOST:PORT PID &

PID is torchrun's. It waits so where the link to the host of the store is cut while hosts meet, and
where HOST:PORT is another program's, which says nothing. What is lost while processes run, they
notice themselves (see lifeline).
"""

import os
import signal
import socket
import sys
import time
from contextlib import suppress

import psutil

from bleuprint.runtime.errors import say

# Seconds: between two looks, for an answer, and for torchrun to start anything at all: it reads
# PyTorch, perhaps from a slow file system, and waits for other hosts (profiles/hosts/train.sh: 45).
_INTERVAL, _ANSWER, _START = 5.0, 5.0, 180.0
_TRIES = 3


def main() -> None:
    """Watch a torchrun until it ends, or end it."""
    with suppress(psutil.NoSuchProcess):
        torchrun = psutil.Process(int(sys.argv[2]))
        reason = in_vain(sys.argv[1], torchrun)
        if reason is not None:
            say(reason)
            torchrun.kill()


def in_vain(meet: str, torchrun: psutil.Process) -> str | None:
    """Wait until a torchrun has ended: None; or until it waits in vain: why."""
    host, _, port = meet.rpartition(":")
    began, met, silent = time.monotonic(), False, 0
    while torchrun.is_running() and torchrun.status() != psutil.STATUS_ZOMBIE:
        if any(child.pid != os.getpid() for child in torchrun.children()):
            met, silent = True, 0
        else:
            silent = 0 if _answers(host, int(port)) else silent + 1
        if silent == _TRIES:
            return f"{host}, where the hosts meet, cannot be reached"
        if not met and time.monotonic() - began > _START:
            return f"torchrun has not begun in {_START:.0f} s: is {meet} another program's port?"
        time.sleep(_INTERVAL)
    return None


def _answers(host: str, port: int) -> bool:
    """Whether there is such a host, be the port open or not."""
    try:
        socket.create_connection((host, port), _ANSWER).close()
    except ConnectionError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # torchrun's, which then ends
    main()
