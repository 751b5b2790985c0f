"""How processes that train together find one another: their ranks, and torch's store.

torchrun and SLURM set the variables that are read here, or the user who starts the processes by
hand. A wrong value, or another program at the address, is one line instead of a wait.
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

# Polling interval, in seconds.
POLL_SECONDS = 0.1
# How long a program that listens may take to greet, in seconds.
_GREETING_SECONDS = 1.0
# How much longer than torch we wait: what torch prints at its own time-out is then dropped.
_MARGIN_SECONDS = 5.0
_NO_SUCH_HOST = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_FAIL)
_PORTS = 65_535


@dataclass(frozen=True)
class Place:
    """The rank of this process, the number of processes, and its rank on its own machine."""

    rank: int
    size: int
    local: int

    def __str__(self) -> str:
        return f"process {self.rank} of {self.size}"


def place() -> Place:
    """This process's place among those that were started together; (0, 1, 0) if it is alone.

    Raises UserError, naming the variable and its value, if a variable is missing or wrong.
    """
    if "WORLD_SIZE" not in os.environ:
        task = slurm.task()
        if task is None:
            return Place(rank=0, size=1, local=0)
        rank, size, local = task
        host, port = slurm.master()
        os.environ.setdefault("MASTER_ADDR", host)
        os.environ.setdefault("MASTER_PORT", str(port))
        return Place(rank, size, local)
    size = environment.whole_number("WORLD_SIZE", lowest=1)
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if size != 1 and not os.environ.get(name):
            raise UserError(f"WORLD_SIZE is {size}, but {name} is not set: start it by torchrun")
    rank = environment.whole_number("RANK", lowest=0, default=0)
    if rank >= size:
        raise UserError(f"RANK is {rank}, but WORLD_SIZE is {size}: ranks are 0 to {size - 1}")
    local = environment.whole_number("LOCAL_RANK", lowest=0, default=0)
    if size > 1:
        environment.whole_number("MASTER_PORT", lowest=1, highest=_PORTS)
    return Place(rank, size, local)


def connect(here: Place) -> Store:
    """torch's store at MASTER_ADDR:MASTER_PORT, held by torch's launcher or by process 0.

    Raises UserError if nothing answers there within BLEUPRINT_TIMEOUT, or something else does, and
    RuntimeError if process 0 is lost.
    """
    host = os.environ["MASTER_ADDR"]
    port = environment.whole_number("MASTER_PORT", lowest=1, highest=_PORTS)
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_master = here.rank == 0 and not agent
    if not is_master:  # TCPStore waits as well, but prints a C++ stack if there is no answer
        wait(
            lambda: _answers(host, port),
            lambda: f"{here}: no answer of process 0 at {host}:{port}",
        )
    store = _open_store(here, host, port, is_master)
    # torch's launcher keeps its store when it restarts the processes
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if agent else "0"
    return PrefixStore(f"attempt {attempt}", store)


def members(store: Store, here: Place, member: Member) -> list[Member]:
    """Publish `member` and wait for the members of the other ranks.

    Polls the store: its own wait prints warnings at a time-out, and does not name the absent ranks.

    Raises:
        UserError: Some ranks did not come; the store is that of another command; or another
            process has this rank.
    """

    def absent() -> str:
        ranks = [str(each) for each in range(here.size) if not store.check([f"member/{each}"])]
        return ", ".join(ranks)

    def late() -> str:
        return f"of {here.size} processes, {absent()} did not join"

    command = json.dumps([here.size, sys.argv[1:]])
    if here.rank == 0:
        store.set("command", command)
    wait(lambda: store.check(["command"]), late)
    if (found := store.get("command").decode()) != command:
        size, arguments = json.loads(found)
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise UserError(
            f"{here} ({' '.join(sys.argv[1:])}) found process 0 of {size} of another command "
            f"({' '.join(arguments)}) at {address}: give each command a MASTER_PORT of its own, "
            "and all its processes the same WORLD_SIZE"
        )
    own = json.dumps([uuid.uuid4().hex, *member])
    store.set(f"member/{here.rank}", own)
    wait(lambda: not absent(), late)
    if store.get(f"member/{here.rank}").decode() != own:
        raise UserError(f"RANK is {here.rank} in two processes: give each process its own rank")
    published = [json.loads(store.get(f"member/{each}")) for each in range(here.size)]
    return [Member(*fields) for _, *fields in published]


def wait(done: Callable[[], bool], late: Callable[[], str]) -> None:
    """Wait until `done`; raises UserError that says what is `late` after BLEUPRINT_TIMEOUT."""
    seconds = environment.timeout()
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise UserError(f"{late()} within {seconds} s (BLEUPRINT_TIMEOUT)")
        time.sleep(POLL_SECONDS)


def _answers(host: str, port: int) -> bool:
    """Whether something accepts connections at an address; raises UserError if it cannot exist."""
    try:
        socket.create_connection((host, port), environment.timeout()).close()
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_HOST:
            raise UserError(f"MASTER_ADDR is {host!r}: no such host") from None
        return False
    except UnicodeError:  # no name that a host can have
        raise UserError(f"MASTER_ADDR is {host!r}: no such host") from None
    except OSError:
        return False
    return True


def _open_store(here: Place, host: str, port: int, is_master: bool) -> Store:
    """torch's store, whose handshake has no limit of its own.

    Hence it is opened in a thread. Where something else answers, the thread may wait for ever, and
    ends with the process.
    """
    opened: list[Store] = []
    errors: list[RuntimeError] = []
    seconds = environment.timeout()

    def open_store() -> None:
        try:
            store = distributed.TCPStore(  # type: ignore[attr-defined]
                host,
                port,
                None,
                is_master,
                timedelta(seconds=seconds),
                wait_for_workers=False,
                multi_tenant=is_master,
            )
            opened.append(store)
        except RuntimeError as error:
            errors.append(error)

    thread = Thread(target=open_store, daemon=True)
    with _silent_stderr():
        thread.start()
        thread.join(seconds + _MARGIN_SECONDS)
    if opened:
        return opened[0]
    reason = str(errors[0]).partition("\n")[0] if errors else ""
    if is_master and "failed to listen" in reason:
        why = reason.rpartition("message: ")[2]
        raise UserError(
            f"MASTER_PORT is {port}: {here} cannot listen there on {socket.gethostname()}: {why}"
            f"{_occupant(host, port)}: choose a port that is free"
        )
    if errors and not _answers(host, port):
        raise errors[0]  # process 0 was there and is gone
    raise UserError(
        f"{here}: MASTER_ADDR and MASTER_PORT are {host}:{port}, but what answers there is not "
        f"process 0{_occupant(host, port)}: choose a port that is free"
    )


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Drop what C++ prints on stderr: torch prints a stack of calls at each error."""
    try:
        kept = os.dup(2)
    except OSError:  # closed
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def _occupant(host: str, port: int) -> str:
    """What listens at an address, in brackets, as far as it can be found out."""
    facts: list[str] = []
    with suppress(OSError):
        facts += _local_listener(host, port)
    with suppress(OSError):
        facts += _greeting(host, port)
    return f" ({', '.join(facts)})" if facts else ""


def _local_listener(host: str, port: int) -> Iterator[str]:
    """The program of this machine that listens at an address, if this user may know it."""
    import psutil  # imported here: hardly ever needed

    own = {each.address for many in psutil.net_if_addrs().values() for each in many}
    found = {str(each[4][0]) for each in socket.getaddrinfo(host, port)}
    if own.isdisjoint(found):
        return
    with suppress(psutil.Error):
        for each in psutil.net_connections("tcp"):
            listens = each.status == psutil.CONN_LISTEN and each.laddr.port == port
            if listens and each.pid is not None:
                yield f"{psutil.Process(each.pid).name()}, process {each.pid}"
                return


def _greeting(host: str, port: int) -> Iterator[str]:
    """The first line that a server sends, by itself as SSH does, or when it is asked by HTTP."""
    with socket.create_connection((host, port), _GREETING_SECONDS) as connection:
        try:
            line = connection.recv(80)
        except TimeoutError:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            line = connection.recv(80)
    text = re.match(rb"[ -~]*", line)
    if text and text[0].strip():
        yield f"it says {text[0].decode().strip()!r}"
