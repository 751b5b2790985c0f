"""The rendezvous of the processes that train together: their ranks, and torch's key-value store.

The environment variables that are read here are set by torchrun, by SLURM, or by a user who starts
the processes by hand. If a value is wrong, or if another program listens at the address, the
process ends with one line that says so, instead of waiting for the others in vain.
"""

import json
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread

from torch import distributed
from torch.distributed.distributed_c10d import PrefixStore, Store

from bleuprint.runtime import environment
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.distributed.gpus import Member
from bleuprint.runtime.errors import UserError

# The polling interval, in seconds.
POLL_SECONDS = 0.1
# How long to wait for the first line of an unknown server, in seconds.
_GREETING_SECONDS = 1.0
# The number of bytes of this line to read: enough for the name and version of the server.
_GREETING_BYTES = 80
# How much longer than torch to wait for its store, in seconds: torch then ends first, and what it
# prints at its own timeout is dropped.
_TIMEOUT_MARGIN_SECONDS = 5.0
# The resolver errors that say that a host name does not exist. Another one may be temporary.
_NO_SUCH_HOST_ERRORS = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_FAIL)
# The highest port number of TCP.
_HIGHEST_PORT = 65_535


@dataclass(frozen=True)
class ProcessRank:
    """The rank of a process among the processes that train together.

    Attributes:
        rank: The rank among all processes, from 0.
        size: The number of all processes.
        local_rank: The rank among the processes of the same machine, from 0.
    """

    rank: int
    size: int
    local_rank: int

    def __str__(self) -> str:
        return f"process {self.rank} of {self.size}"


def rank_from_launcher() -> ProcessRank:
    """Return the rank of this process, as the launcher of the processes has set it.

    There are three cases:
    - torchrun, or a user, has set WORLD_SIZE and RANK.
    - SLURM has started the process and has set variables of its own. This function then also sets
      MASTER_ADDR and MASTER_PORT, which SLURM does not set and `connect` reads.
    - No launcher has started the process: it trains alone, with rank 0 of 1.

    Raises:
        UserError: A variable is missing or wrong; the message names the variable and its value.
    """
    if "WORLD_SIZE" in os.environ:
        return _rank_from_variables()
    task = slurm.job_step_task()
    if task is None:
        return ProcessRank(rank=0, size=1, local_rank=0)
    rank, size, local_rank = task
    _set_slurm_address()
    return ProcessRank(rank, size, local_rank)


def _rank_from_variables() -> ProcessRank:
    """Return the rank that WORLD_SIZE, RANK and LOCAL_RANK give, and check the address as well."""
    size = environment.whole_number("WORLD_SIZE", lowest=1)
    if size > 1:
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            if not os.environ.get(name):
                raise UserError(
                    f"WORLD_SIZE is {size}, but {name} is not set: start it by torchrun"
                )
    rank = environment.whole_number("RANK", lowest=0, default=0)
    if rank >= size:
        raise UserError(f"RANK is {rank}, but WORLD_SIZE is {size}: ranks are 0 to {size - 1}")
    local_rank = environment.whole_number("LOCAL_RANK", lowest=0, default=0)
    if size > 1:
        _master_port()  # raises UserError if it is wrong, before this process occupies a GPU
    return ProcessRank(rank, size, local_rank)


def _set_slurm_address() -> None:
    """Set MASTER_ADDR and MASTER_PORT for a SLURM job step, unless the user has set them."""
    host, port = slurm.master_address()
    os.environ.setdefault("MASTER_ADDR", host)
    os.environ.setdefault("MASTER_PORT", str(port))


def _master_port() -> int:
    """Return MASTER_PORT; raises UserError if it is not a port number."""
    return environment.whole_number("MASTER_PORT", lowest=1, highest=_HIGHEST_PORT)


def connect(process: ProcessRank) -> Store:
    """Connect to torch's key-value store at MASTER_ADDR:MASTER_PORT.

    The server of the store is part of torchrun if torchrun says so, and part of process 0
    otherwise.

    Args:
        process: The rank of this process.

    Returns:
        The store. Its keys are separate from those of earlier attempts of the same torchrun.

    Raises:
        UserError: Nothing answers at the address within BLEUPRINT_TIMEOUT, or another program does.
        RuntimeError: The connection to process 0 is lost.
    """
    host = os.environ["MASTER_ADDR"]
    port = _master_port()
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


def exchange_members(store: Store, process: ProcessRank, member: Member) -> list[Member]:
    """Publish the member that this process is, and wait for the members of all other processes.

    This function polls the store. The store's own wait prints warnings at a timeout, and it does
    not say which ranks are absent.

    Args:
        store: The store, which all processes have opened.
        process: The rank of this process.
        member: The host and the GPU of this process.

    Returns:
        The members in the order of their ranks.

    Raises:
        UserError: Some processes did not join in time, the store belongs to another command, or
            another process has the same rank.
    """
    _check_command(store, process)
    own_key = _member_key(process.rank)
    # The random number tells two processes apart that publish the same member at the same rank.
    own_entry = json.dumps([uuid.uuid4().hex, *member])
    store.set(own_key, own_entry)
    wait_until(
        is_done=lambda: not _absent_ranks(store, process.size),
        missing=lambda: _missing_processes(store, process.size),
    )
    if store.get(own_key).decode() != own_entry:
        raise UserError(f"RANK is {process.rank} in two processes: give each process its own rank")
    all_members = []
    for rank in range(process.size):
        _, *fields = json.loads(store.get(_member_key(rank)))
        all_members.append(Member(*fields))
    return all_members


def _check_command(store: Store, process: ProcessRank) -> None:
    """Check that process 0 was started by the same command, with the same number of processes.

    Two commands with the same MASTER_PORT would otherwise mix their processes.
    """
    own_command = json.dumps([process.size, sys.argv[1:]])
    if process.rank == 0:
        store.set("command", own_command)
    wait_until(
        is_done=lambda: store.check(["command"]),
        missing=lambda: _missing_processes(store, process.size),
    )
    command = store.get("command").decode()
    if command == own_command:
        return
    size, arguments = json.loads(command)
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    raise UserError(
        f"{process} ({' '.join(sys.argv[1:])}) found process 0 of {size} of another command "
        f"({' '.join(arguments)}) at {address}: give each command a MASTER_PORT of its own, "
        "and all its processes the same WORLD_SIZE"
    )


def _member_key(rank: int) -> str:
    """Return the key under which the process with this rank publishes its member."""
    return f"member/{rank}"


def _absent_ranks(store: Store, size: int) -> list[int]:
    """Return the ranks, of `size` processes, that have not published their members yet."""
    return [rank for rank in range(size) if not store.check([_member_key(rank)])]


def _missing_processes(store: Store, size: int) -> str:
    """Return the beginning of a message that names the absent ranks."""
    ranks = ", ".join(str(rank) for rank in _absent_ranks(store, size))
    return f"of {size} processes, {ranks} did not join"


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
    """
    stores: list[Store] = []
    errors: list[RuntimeError] = []
    timeout_seconds = environment.timeout_seconds()

    def open_store() -> None:
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
            f"{cause}{_occupant(host, port)}: choose a port that is free"
        )
    if errors and not _accepts_connections(host, port):
        raise errors[0]  # Process 0 answered before, and has ended since.
    raise UserError(
        f"{process}: MASTER_ADDR and MASTER_PORT are {host}:{port}, but what answers there is not "
        f"process 0{_occupant(host, port)}: choose a port that is free"
    )


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop what C++ prints on stderr: torch prints a stack of calls at each error."""
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


def _occupant(host: str, port: int) -> str:
    """Return what is known of the program that listens at an address, in parentheses.

    Returns:
        The parentheses with a space before them; an empty string if nothing is known.
    """
    facts = []
    with suppress(OSError):
        listener = _local_listener(host, port)
        if listener is not None:
            facts.append(listener)
    with suppress(OSError):
        greeting = _greeting(host, port)
        if greeting:
            facts.append(f"it says {greeting!r}")
    return f" ({', '.join(facts)})" if facts else ""


def _local_listener(host: str, port: int) -> str | None:
    """Return the name and number of the process of this machine that listens at an address.

    Returns:
        Such as `sshd, process 12`; None if the address belongs to another machine, or if the
        system does not show the process to this user.
    """
    import psutil  # This import takes time, and the module is needed for an error message only.

    if _machine_addresses().isdisjoint(_resolved_addresses(host, port)):
        return None
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            is_listener = connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            if is_listener and connection.pid is not None:
                name = psutil.Process(connection.pid).name()
                return f"{name}, process {connection.pid}"
    return None


def _machine_addresses() -> set[str]:
    """Return the addresses of all network interfaces of this machine."""
    import psutil

    addresses: set[str] = set()
    for interface_addresses in psutil.net_if_addrs().values():
        addresses.update(interface.address for interface in interface_addresses)
    return addresses


def _resolved_addresses(host: str, port: int) -> set[str]:
    """Return the IP addresses that a host name resolves to."""
    addresses: set[str] = set()
    for _family, _kind, _protocol, _name, socket_address in socket.getaddrinfo(host, port):
        addresses.add(str(socket_address[0]))
    return addresses


def _greeting(host: str, port: int) -> str:
    """Return the first line that a server sends; an empty string if it is not readable text.

    Some servers, such as SSH, send a line at once. A server that does not is asked by HTTP.
    """
    with socket.create_connection((host, port), _GREETING_SECONDS) as connection:
        try:
            answer = connection.recv(_GREETING_BYTES)
        except TimeoutError:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = connection.recv(_GREETING_BYTES)
    printable = re.match(rb"[ -~]*", answer)  # the printable ASCII characters, from " " to "~"
    return printable[0].decode().strip() if printable else ""
