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
    """Connect to the key-value store through which training processes find one another.

    One process serves it at the address MASTER_ADDR:MASTER_PORT: process 0, or torchrun if it has
    started the processes.

    Args:
        process: The rank of this process.

    Returns:
        The store. If torchrun has restarted the processes after a failure, they do not see the
        keys that were written before.

    Raises:
        UserError: Nothing answers at the address within BLEUPRINT_TIMEOUT, or another program does.
        RuntimeError: The connection to process 0 is lost.
    """
    host = os.environ["MASTER_ADDR"]
    port = master_port()
    is_served_by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_server = process.rank == 0 and not is_served_by_torchrun
    if not is_server:
        # TCPStore would also wait for the server, but prints a C++ stack if no server answers.
        wait_until(
            is_done=lambda: _accepts_connections(host, port),
            describe_missing=lambda: f"{process}: process 0 does not answer at {host}:{port}",
        )
    store = _open_store(process, host, port, is_server)
    # When torchrun restarts the processes, it keeps its store with the old entries. A prefix gives
    # each attempt its own keys.
    attempt = "0"
    if is_served_by_torchrun:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return PrefixStore(f"attempt {attempt}", store)


def wait_until(is_done: Callable[[], bool], describe_missing: Callable[[], str]) -> None:
    """Wait until a condition holds, for at most BLEUPRINT_TIMEOUT seconds.

    Args:
        is_done: A function that returns whether the condition holds. It is called repeatedly.
        describe_missing: A function that returns what has not happened, such as `processes 1, 3 of
            4 did not join`, for the message of the error.

    Raises:
        UserError: The condition does not hold in time.
    """
    timeout_seconds = environment.timeout_seconds()
    deadline = time.monotonic() + timeout_seconds
    while not is_done():
        if time.monotonic() > deadline:
            raise UserError(f"{describe_missing()} within {timeout_seconds} s (BLEUPRINT_TIMEOUT)")
        time.sleep(POLL_SECONDS)


def _accepts_connections(host: str, port: int) -> bool:
    """Return whether a program accepts connections at an address.

    Raises:
        UserError: The host name does not exist, so waiting longer would not help.
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
    """Open torch's key-value store, and raise an error that names the cause if this fails.

    torch has no timeout for the server's reply: if another program listens at the address, torch
    waits for ever. So the store is opened in a thread, for which this function waits only some
    time. It is a daemon thread, which ends with the process even if it still waits.

    Args:
        process: The rank of this process, for messages.
        host: The host of the server.
        port: The port of the server.
        is_server: Whether this process itself is the server.

    Raises:
        UserError: The server cannot listen at its port, or another program answers at the address.
        RuntimeError: Process 0 has ended meanwhile.
    """
    stores: list[Store] = []
    errors: list[RuntimeError] = []
    timeout_seconds = environment.timeout_seconds()

    def open_store() -> None:
        """Open the store in a thread, and append it to `stores`, or torch's error to `errors`.

        The lists are needed because a thread cannot return a value.
        """
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
    error = errors[0] if errors else None
    raise _explain_failure(error, process, host, port, is_server)


def _explain_failure(
    error: RuntimeError | None, process: ProcessRank, host: str, port: int, is_server: bool
) -> UserError | RuntimeError:
    """Return the error to raise if torch's key-value store could not be opened.

    The port of the server may be in use, the server may have ended, or another program may listen
    at its address. The error tells the user which of these has happened.

    Args:
        error: torch's error; None if it was still waiting when the time was over.
        process: The rank of this process.
        host: The host of the server.
        port: The port of the server.
        is_server: Whether this process itself is the server.
    """
    # The first line of torch's message is the reason; the C++ calls that led to it follow.
    reason = str(error).partition("\n")[0] if error is not None else ""
    if is_server and "failed to listen" in reason:
        cause = reason.rpartition("message: ")[2]
        return UserError(
            f"MASTER_PORT is {port}: {process} cannot listen there on {socket.gethostname()}: "
            f"{cause}{describe_occupant(host, port)}. Choose a free port"
        )
    if error is not None and not _accepts_connections(host, port):
        return error  # Nobody listens any more: process 0 has ended since it was found.
    return UserError(
        f"{process}: MASTER_ADDR and MASTER_PORT are {host}:{port}, but another program answers "
        f"there, not process 0{describe_occupant(host, port)}. Choose a free port"
    )


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop what Python and C++ print on standard error during a `with` block.

    At each error, torch prints a C++ stack. C++ does not write to Python's `sys.stderr`, but to the
    file descriptor of standard error. So the descriptor is redirected to the null device, and
    restored at the end of the block.
    """
    stderr_descriptor = 2
    try:
        stderr_copy = os.dup(stderr_descriptor)
    except OSError:  # The process was started with standard error closed.
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, stderr_descriptor)
        yield
    finally:
        os.dup2(stderr_copy, stderr_descriptor)
        os.close(stderr_copy)
        os.close(null)
