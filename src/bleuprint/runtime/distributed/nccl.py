"""NCCL's errors and time-outs in one line.

The host learns of them from torch's watchdog only (ProcessGroupNCCL.cpp of torch 2.13), which notes
the error, waits for a minute and then aborts the process with C++ stacks.
"""

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from torch import distributed

from bleuprint.runtime import environment
from bleuprint.runtime.errors import PeerLost, run_main

# Seconds between two looks at the watchdog's note.
_EVERY = 1.0


def watch(error: Callable[[], Any], process: str) -> None:
    """End this process once `error()`, an ErrorType, is one: whatever it waits for.

    Returns at once. The status and the line are those of PeerLost; `process` names this one.
    """

    def poll() -> None:
        while distributed.is_initialized():
            if (name := error().name) != "SUCCESS":
                run_main(lambda: _lost(process, name))
            time.sleep(_EVERY)

    Thread(target=poll, daemon=True).start()


def _lost(process: str, error: str) -> None:
    late = f"no answer within {environment.timeout_seconds()} s (BLEUPRINT_TIMEOUT)"
    what = late if error == "TIMEOUT" else f"its communication failed ({error})"
    raise PeerLost(f"{process} lost another process: NCCL: {what}")
