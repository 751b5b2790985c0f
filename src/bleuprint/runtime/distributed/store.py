"""The connection to torch's key-value store, through which training processes find one another.

One process is the server of the store: torchrun if it says so, and process 0 otherwise. All other
processes connect to it at MASTER_ADDR:MASTER_PORT. If nothing answers there, or another program
does, the process ends with one line that says so: torch itself would print a C++ stack, or wait.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Thread

from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore, Store

from bleuprint.runtime import environment
from bleuprint.runtime.distributed.port_occupant import describe_occupant
from bleuprint.runtime.distributed.ranks import ProcessRank, master_port
from bleuprint.runtime.errors import UserError

# The polling interval, in seconds.
POLL_SECONDS = 0.1
# How much longer than torch to wait for its store, in seconds: torch then ends first, and what it
# prints at its own timeout is dropped.
_TIMEOUT_MARGIN_SECONDS = 5.0
# The resolver errors that say that a host name does not exist. Other errors may be temporary.
_NO_SUCH_HOST_ERRORS = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_FAIL)


def connect(process: ProcessRank) -> Store:
    """Connect to torch's key-value store at MASTER_ADDR:MASTER_PORT.

    Args:
        process: The rank of this process.

    Returns:
        The store. Its keys are separate from those of earlier attempts of the same torchrun.

    Raises:
        UserError: Nothing answers at the address within BLEUPRINT_TIMEOUT, or another program does.
        RuntimeError: The connection to process 0 is lost.
    """
    host = os.environ["MASTER_ADDR"]
    port = master_port()
    is_served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_server = process.rank == 0 and not is_served_by_torchrun
    if not is_server:
        # TCPStore would wait for the server as well, but it prints a C++ stack if none answers.
        wait_until(
            is_done=lambda: _accepts_connections(host, port),
            missing=lambda: f"{process}: no answer of process 0 at {host}:{port}",
        )
    store = _open_store(process, host, port, is_server)
    # torchrun keeps its store, with the keys of the last attempt, when it restarts the processes.
    attempt = "0"
    if is_served_by_torchrun:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"attempt {attempt}", store)


def wait_until(is_done: Callable[[], bool], missing: Callable[[], str]) -> None:
    """Wait until a condition holds, for BLEUPRINT_TIMEOUT seconds at most.

    Args:
        is_done: Returns whether the condition holds; it is called at each polling interval.
        missing: Returns what has not happened, for the message; it is called at the timeout only.

    Raises:
        UserError: The condition does not hold in time.
    """
    timeout_seconds = environment.timeout_seconds()
    deadline = time.monotonic() + timeout_seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise UserError(f"{missing()} within {timeout_seconds} s (BLEUPRINT_TIMEOUT)")
        time.sleep(POLL_SECONDS)


def _accepts_connections(host: str, port: int) -> bool:
    """Return whether a program accepts connections at an address.

    Raises:
        UserError: The host name does not exist, so that waiting for it would be in vain.
    """
    try:
        connection = socket.create_connection((host, port), environment.timeout_seconds())
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_HOST_ERRORS:
            raise UserError(f"MASTER_ADDR is {host!r}: no such host") from None
        return False
    except UnicodeError:  # The name is not a valid host name, such as one with a part too long.
        raise UserError(f"MASTER_ADDR is {host!r}: no such host") from None
    except OSError:
        return False
    connection.close()
    return True


def _open_store(process: ProcessRank, host: str, port: int, is_server: bool) -> Store:
    """Open torch's key-value store, in a thread, and name the cause if this fails.

    torch waits for the handshake with the server without a timeout. If another program answers at
    the address, the thread may never end; it is a daemon, which ends with the process.

    Raises:
        UserError: The server cannot listen at its port, or another program answers at the address.
        RuntimeError: Process 0 has ended meanwhile.
    """
    stores: list[Store] = []
    errors: list[RuntimeError] = []
    timeout_seconds = environment.timeout_seconds()

    def open_store() -> None:
        """Append the store to `stores`, or torch's error to `errors`."""
        try:
            store = distributed.TCPStore(  # type: ignore[attr-defined]
                host_name=host,
                port=port,
                world_size=None,
                is_master=is_server,
                timeout=timedelta(seconds=timeout_seconds),
                wait_for_workers=False,
                multi_tenant=is_server,
            )
            stores.append(store)
        except RuntimeError as error:
            errors.append(error)

    thread = Thread(target=open_store, daemon=True)
    with _silent_stderr():
        thread.start()
        thread.join(timeout_seconds + _TIMEOUT_MARGIN_SECONDS)
    if stores:
        return stores[0]
    # The first line of torch's message is the reason; a C++ stack follows.
    reason = str(errors[0]).partition("\n")[0] if errors else ""
    if is_server and "failed to listen" in reason:
        cause = reason.rpartition("message: ")[2]
        raise UserError(
            f"MASTER_PORT is {port}: {process} cannot listen there on {socket.gethostname()}: "
            f"{cause}{describe_occupant(host, port)}: choose a port that is free"
        )
    if errors and not _accepts_connections(host, port):
        raise errors[0]  # Process 0 answered before, and has ended since.
    raise UserError(
        f"{process}: MASTER_ADDR and MASTER_PORT are {host}:{port}, but what answers there is not "
        f"process 0{describe_occupant(host, port)}: choose a port that is free"
    )


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop what is printed on standard error in the block, also by C++.

    torch prints a stack of calls at each error. C++ writes to descriptor 2, so the descriptor is
    replaced by the null device, and put back at the end.
    """
    try:
        stderr_copy = os.dup(2)
    except OSError:  # The process was started with stderr closed.
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr_copy, 2)
        os.close(stderr_copy)
        os.close(null)
