"""A watch over NCCL, which ends the process with one line when another process is lost.

NCCL sums gradients between GPUs. Only torch's watchdog thread learns of its errors and timeouts: it
notes the error, waits for a minute and then aborts the process with C++ stacks
(ProcessGroupNCCL.cpp of torch 2.13). `end_process_after_error` reads the note first.
"""

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from torch import distributed

from bleuprint.runtime import environment
from bleuprint.runtime.errors import PeerLost, run_main

# Seconds between two looks at the watchdog's note.
_INTERVAL_SECONDS = 1.0


def end_process_after_error(read_error: Callable[[], Any], process: str) -> None:
    """Start a thread that ends this process when the communication between GPUs has failed.

    The main thread cannot notice the failure, since it may be waiting for the GPU. The process
    prints that it has lost another process and exits with the status of PeerLost.

    Args:
        read_error: A function that returns the state of NCCL, the library by which GPUs
            communicate. It is an enum member, such as `SUCCESS` or `TIMEOUT`.
        process: The name of this process for the message, such as `process 0 of 2 on host`.
    """

    def end_after_error() -> None:
        """Wait for an error, and then end this process as if its main function raised PeerLost."""
        error_name = _wait_for_error(read_error)
        if error_name is not None:
            # An exception here would end only this thread. `run_main` ends the whole process, with
            # the message and the exit status of the exception.
            run_main(lambda: _raise_peer_lost(process, error_name))

    Thread(target=end_after_error, daemon=True).start()


def _wait_for_error(read_error: Callable[[], Any]) -> str | None:
    """Wait until the communication between GPUs has failed, or until the training has ended.

    Args:
        read_error: A function that returns the state of NCCL, the library by which GPUs
            communicate. It is an enum member, such as `SUCCESS` or `TIMEOUT`.

    Returns:
        The name of the error, such as `TIMEOUT`; None if the training ended without an error.
    """
    while distributed.is_initialized():
        error_name: str = read_error().name
        if error_name != "SUCCESS":
            return error_name
        time.sleep(_INTERVAL_SECONDS)
    return None


def _raise_peer_lost(process: str, error_name: str) -> None:
    """Raise PeerLost with a message that explains an error of NCCL.

    Args:
        process: The name of this process, for the message.
        error_name: The name of the error in torch's `ErrorType`, such as `TIMEOUT`.
    """
    if error_name == "TIMEOUT":
        timeout_seconds = environment.timeout_seconds()
        problem = f"no answer within {timeout_seconds} s (BLEUPRINT_TIMEOUT)"
    else:
        problem = f"its communication failed ({error_name})"
    raise PeerLost(f"{process} lost another process: NCCL: {problem}")
