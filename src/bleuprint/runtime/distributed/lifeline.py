"""How processes that train together learn that one of them is gone.

A collective operation raises soon after a peer's connection was closed, where there is one; by NCCL
or over a link that was cut it may wait until its time-out, and that has to allow for a process that
compiles, validates or writes for minutes. So each process keeps a connection of its own to process
0, on which nothing is said until one ends. The kernel closes it when its process dies, and answers
its keep-alives as long as the machine and the link are there, however busy the process may be.
"""

import ipaddress
import os
import secrets
import selectors
import signal
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

import psutil
from torch.distributed import DistError
from torch.distributed.distributed_c10d import PrefixStore, Store

from bleuprint.runtime.errors import GONE, UserError, say

# Seconds that processes wait for one another at the start: one may come from a slow file system.
# Under torchrun all hosts were there a moment ago, and have read PyTorch.
_JOINING, _SHORTLY = 300.0, 30.0
# Seconds. A link that was cut is noticed after 5 + 2 x 5 of them, and a process whose others are
# gone has 8 to end by itself: less than 30 in all.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2}
_GRACE = 8.0
_GREETING = 10.0
# Where torchrun starts them all again, the store still tells of the process 0 that was before.
_PAUSE = 0.2
# News of another's end may be a little later than an error that comes of it.
_NEWS = 3.0
# It ends after the one that failed, whom torchrun and srun should see first.
_AFTER = 1.0
# Where all fail together, process 0 knows most: the others leave it so long to tell.
_PRECEDENCE, _LOOK = 2.0, 0.05

# What a process says at its end: all is well; it has failed, and told why.
_WELL, _FAILED = b".", b"!"
_WELCOME = b"+"
_ADDRESS = "bleuprint/lifeline"


# Asked at the start, when it is there: a process that has lost its parent gets another one.
_TORCHRUN = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None


def patience() -> float:
    """Seconds that the processes wait for one another at the start."""
    return _JOINING if _TORCHRUN is None else _SHORTLY


def end_torchrun() -> None:
    """End torchrun, if it started this process, where a host is gone.

    It would wait for an answer from that one until the kernel gives up, 15 minutes.
    """
    if os.getppid() == _TORCHRUN:
        with suppress(ProcessLookupError):
            os.kill(_TORCHRUN, signal.SIGKILL)


class Lifeline:
    """A process's connection to process 0; at process 0, those to all others.

    `shared` may be as old as torchrun; `store`, a part of it, is for these processes alone.
    `silent` leaves it to the process that started them all to tell who was killed.
    """

    def __init__(self, rank: int, size: int, shared: Store, silent: bool) -> None:
        self._rank, self._size, self._shared, self._silent = rank, size, shared, silent
        self._left, self._lost = False, threading.Event()
        token, self._links = self._accept() if rank == 0 else self._connect()
        # The number of restarts would not tell them apart: torchrun's differs from host to host.
        self.store = PrefixStore(f"bleuprint/{token}", shared)
        self._choose_interface()
        for link in self._links:
            link.settimeout(None)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEP_ALIVE.items():
                link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        threading.Thread(target=self._watch, daemon=True).start()

    def leave(self, well: bool) -> None:
        """Tell the others that this process ends, and whether they may go on without it."""
        self._left = True
        for link in list(self._links):
            with suppress(OSError):
                link.send(_WELL if well else _FAILED)

    def verdict(self, status: int, bug: bool) -> tuple[int, bool]:
        """Before this process ends with `status`: the one it should end with, and if it tells why.

        An error that looks like a bug comes of another's end if there was one. Of several that
        fail, often for the same reason, one tells: process 0, or the first of the others.
        """
        if bug and self._lost.wait(_NEWS):
            status, tells = GONE, False
            if not self._silent:
                time.sleep(_AFTER)
        else:
            tells = status != 0 and self._first(0 if bug or self._rank == 0 else _PRECEDENCE)
        self.leave(well=status in (0, os.EX_TEMPFAIL))
        return status, tells

    def _first(self, seconds: float) -> bool:
        """Whether none has told before, nor does in the next `seconds`."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and not self.store.check(["told"]):
                time.sleep(_LOOK)
            return self.store.add("told", 1) == 1
        except DistError:
            return False  # the store has ended, with a process that was first

    def _accept(self) -> tuple[str, dict[socket.socket, str]]:
        """Wait for the others; a token that all know, and their connections and names."""
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        family, own = _own_address(host, port)
        # Known to this machine by its name alone: another one knows it by an address.
        by_name = _is_loopback(own) and own != host
        token = secrets.token_hex(8)
        links: dict[socket.socket, str] = {}
        with socket.create_server(
            ("" if by_name else own, 0),
            family=family,
            backlog=self._size,
            dualstack_ipv6=family == socket.AF_INET6 and socket.has_dualstack_ipv6(),
        ) as server:
            address = host if by_name else own
            told = f"{address} {server.getsockname()[1]} {token} {socket.gethostname()}"
            self._shared.set(_ADDRESS, told)
            deadline = time.monotonic() + patience()
            while len(links) < self._size - 1:
                server.settimeout(max(0.001, deadline - time.monotonic()))
                try:
                    link, _ = server.accept()
                except TimeoutError:
                    end_torchrun()
                    raise UserError(self._missing(links.values())) from None
                link.settimeout(_GREETING)
                with (
                    suppress(OSError),
                    link.makefile(encoding="utf-8", errors="replace") as greeting,
                ):
                    said, _, name = greeting.readline().rstrip("\n").partition(" ")
                    if said == token:  # others may knock, such as a scan of ports
                        link.sendall(_WELCOME)
                        links[link] = name
                if link not in links:
                    link.close()
        return token, links

    def _connect(self) -> tuple[str, dict[socket.socket, str]]:
        """Reach process 0; the token that all know, and the connection with its name."""
        name = f"process {self._rank} of {self._size}"
        self._shared.wait([_ADDRESS], timedelta(seconds=patience()))
        deadline = time.monotonic() + _SHORTLY
        while True:
            address, port, token, host = self._shared.get(_ADDRESS).decode().split(" ")
            try:
                link = socket.create_connection((address, int(port)), _GREETING)
                link.sendall(f"{token} {name} on {socket.gethostname()}\n".encode())
                link.settimeout(patience())
                if link.recv(1) == _WELCOME:
                    return token, {link: f"process 0 of {self._size} on {host}"}
                reason = "it does not answer"
            except OSError as error:
                reason = error.strerror or str(error)
            if time.monotonic() > deadline:
                end_torchrun()
                raise UserError(f"{name} cannot reach process 0 at {address}:{port}: {reason}")
            time.sleep(_PAUSE)

    def _missing(self, come: Iterable[str]) -> str:
        there = {0, *(int(name.split()[1]) for name in come)}
        numbers = ", ".join(str(rank) for rank in range(self._size) if rank not in there)
        return f"processes of {self._size} that have not come in {patience():.0f} s: {numbers}"

    def _choose_interface(self) -> None:
        """Have gloo talk over the interface by which the others were reached.

        By itself it takes that of the host's name, which may well be the loopback; it then waits
        for the others as long as for one that computes.
        """
        own = [str(link.getsockname()[0]).removeprefix("::ffff:") for link in self._links]
        reached = next((address for address in own if not _is_loopback(address)), own[0])
        if self._rank == 0:
            self.store.set("address", reached)
        elif _is_loopback(reached):
            reached = self.store.get("address").decode()  # of the same machine
        for name, addresses in psutil.net_if_addrs().items():
            if reached in (address.address.partition("%")[0] for address in addresses):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", name)

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for link in self._links:
                selector.register(link, selectors.EVENT_READ, link)
            while self._links:
                for key, _ in selector.select():
                    link = key.data
                    selector.unregister(link)
                    said, host = b"", False
                    try:
                        said = link.recv(1)
                    except OSError as error:
                        host = not isinstance(error, ConnectionResetError)
                    name = self._links.pop(link)
                    if said != _WELL and not self._left:
                        self._lose(name, host, told=said == _FAILED)

    def _lose(self, name: str, host: bool, told: bool) -> None:
        """Tell the user and the others that one is gone, and end, unless the work itself does.

        `host`: its machine or the link to it is gone as well.
        """
        # Process 0 knows of all others; that it is gone itself is left to one of them to tell.
        if not told and not self._silent and self._rank <= 1:
            say(f"{name} is gone{': its host does not answer' if host else ''}")
        for link in self._links:
            with suppress(OSError):
                link.send(_FAILED)
        self._lost.set()
        if host:
            end_torchrun()
        time.sleep(_GRACE)
        os._exit(GONE)


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _own_address(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """The address by which this machine reaches `host`, and so can be reached itself."""
    family, *_, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)  # sends nothing, it chooses the route
        return family, str(probe.getsockname()[0]).partition("%")[0]
