"""The processes that train one model together: one a GPU, or any number on CPUs.

Their number changes no result beyond rounding, so it comes from the machine, from
BLEUPRINT_PROCESSES, or from torchrun or SLURM's srun; never from params.yaml or a command that DVC
records.
"""

import ctypes
import hashlib
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store, _get_default_group

from bleuprint.runtime import environment
from bleuprint.runtime.distributed import nccl, slurm
from bleuprint.runtime.distributed.gpus import Member, check_gpus, gpu_count, notes, occupy
from bleuprint.runtime.errors import PeerLost, UserError, say

_PR_SET_PDEATHSIG = 1  # of Linux's prctl
# Polling interval, in seconds.
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Group:
    """This process's place among those that train together; `local` of them on its machine.

    `gpus`: the names of the GPUs of all processes, each once.
    """

    rank: int
    size: int
    device: torch.device
    local: int = 1
    gpus: tuple[str, ...] = ()

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum `tensor` over all processes, in place. Raises PeerLost."""
        self.start_all_reduce(tensor).wait()
        return tensor

    def start_all_reduce(self, tensor: Tensor) -> "Pending":
        """Begin to sum `tensor` over all processes, in place; neither read nor change it before
        the result's `wait()`. All processes begin the same sums in the same order.
        """
        if self.size == 1:
            return Pending()
        with self._naming_lost_peers(tensor.device):
            work = distributed.all_reduce(tensor, async_op=True)
        return Pending(work, lambda: self._naming_lost_peers(tensor.device))

    def any(self, flag: bool) -> bool:
        """Whether `flag` is set on any process; the same answer on all of them.

        Decided on the CPUs, as all that follows: no process waits for what its GPU computes.
        """
        return flag if self.size == 1 else bool(self.all_reduce(torch.tensor(float(flag))))

    def broadcast(self, number: float) -> float:
        """The number of rank 0."""
        if self.size == 1:
            return float(number)
        mine = torch.tensor(number if self.is_main else 0, dtype=torch.float64)
        return float(self.all_reduce(mine))

    def differs(self, text: str) -> bool:
        """Whether `text` differs between processes; the same answer on all of them."""
        own = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # a float64 holds 48 bits
        return self.any(own != self.broadcast(own))

    def barrier(self) -> None:
        """Wait until all processes have called this."""
        self.any(False)

    def close(self) -> None:
        """Leave the group; other processes may still have work to do."""
        if self.size > 1:
            distributed.destroy_process_group()

    @contextmanager
    def _naming_lost_peers(self, device: torch.device) -> Iterator[None]:
        """Raise PeerLost for the errors of the backend that communicates tensors of `device`."""
        try:
            yield
        except RuntimeError as error:
            # gloo raises plain RuntimeErrors
            if device.type == "cuda" and not isinstance(error, distributed.DistError):
                raise
            raise _peer_lost(self.rank, self.size, "lost another process", error) from None


@dataclass(frozen=True)
class Pending:
    """A sum over all processes that has begun; of one process, nothing."""

    _work: distributed.Work | None = None
    _naming: Callable[[], AbstractContextManager[None]] = nullcontext

    def wait(self) -> None:
        """Wait for the sum: the host for one of CPU tensors, else the GPU's current stream alone.

        Raises PeerLost.
        """
        if self._work is not None:
            with self._naming():
                self._work.wait()


def started() -> bool:
    """Whether this is one of several processes that torchrun, srun or `launch` has started."""
    return "WORLD_SIZE" in os.environ or slurm.task() is not None


def init_process_group() -> Group:
    """Join the processes that were started together; a group of one if this one is alone.

    Raises UserError if some do not come within BLEUPRINT_TIMEOUT, or have no GPU for themselves.
    """
    rank, size, local = _place()
    gpus = gpu_count()
    # under SLURM each process may see its own GPU only, whatever its rank
    device = torch.device("cuda", local % gpus) if gpus else torch.device("cpu")
    member = occupy(device, f"process {rank} of {size}")
    members = _join(rank, size, device, member) if size > 1 else [member]
    if rank == 0:
        for note in notes(members):
            say(note, "note")
    hosts, names = zip(*((each.host, each.name) for each in members), strict=True)
    return Group(
        rank, size, device, hosts.count(member.host), (*dict.fromkeys(filter(None, names)),)
    )


def _join(rank: int, size: int, device: torch.device, member: Member) -> list[Member]:
    """Join the others of a group of several; returns what each of them has published."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        # torch's launcher leaves its processes running if it is killed itself
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    gpu = device.type == "cuda"
    try:
        store = _connect(rank, size)
        members = _members(store, rank, size, member)
        check_gpus(members)
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if gpu else "gloo",
            timeout=timedelta(seconds=environment.timeout()),
            world_size=size,
            rank=rank,
            store=store,
            device_id=device if gpu else None,
        )
    except RuntimeError as error:
        raise _peer_lost(rank, size, "cannot join the others", error) from None
    if gpu:
        backend = _get_default_group()._get_backend(device)
        nccl.watch(backend.get_error, f"process {rank} of {size} on {member.host}")
    return members


def _place() -> tuple[int, int, int]:
    """This process's rank, the number of processes, and its rank on this machine."""
    if "WORLD_SIZE" not in os.environ:
        task = slurm.task()
        if task is None:
            return 0, 1, 0
        host, port = slurm.master()
        os.environ.setdefault("MASTER_ADDR", host)
        os.environ.setdefault("MASTER_PORT", str(port))
        return task
    size = os.environ["WORLD_SIZE"]
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if size != "1" and not os.environ.get(name):
            raise UserError(f"WORLD_SIZE is {size}, but {name} is not set: start it by torchrun")
    return int(os.environ.get("RANK", "0")), int(size), int(os.environ.get("LOCAL_RANK", "0"))


def _connect(rank: int, size: int) -> Store:
    """torch's store at MASTER_ADDR:MASTER_PORT, held by torch's launcher or by rank 0."""
    address = host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    master, timeout = rank == 0 and not agent, environment.timeout()

    def answers() -> bool:
        try:
            socket.create_connection(address, timeout).close()
        except OSError:
            return False
        return True

    if not master:  # TCPStore waits as well, but prints a C++ stack if there is no answer
        _wait(answers, lambda: f"process {rank} of {size}: no answer of process 0 at {host}:{port}")
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        *(host, port, None, master, timedelta(seconds=timeout)),
        wait_for_workers=False,
        multi_tenant=master,
    )
    # torch's launcher keeps its store when it restarts the processes
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if agent else "0"
    return PrefixStore(f"attempt {attempt}", store)


def _members(store: Store, rank: int, size: int, member: Member) -> list[Member]:
    """Publish `member` and wait for those of the other ranks; raises UserError naming the absent.

    Polls the store: its own wait prints warnings at a time-out, and does not name the absent ranks.
    """
    store.set(f"member/{rank}", json.dumps(member))

    def absent() -> list[str]:
        return [str(each) for each in range(size) if not store.check([f"member/{each}"])]

    _wait(lambda: not absent(), lambda: f"of {size} processes, {', '.join(absent())} did not join")
    return [Member(*json.loads(store.get(f"member/{each}"))) for each in range(size)]


def _wait(done: Callable[[], bool], late: Callable[[], str]) -> None:
    """Wait until `done`; raises UserError that says what is `late` after BLEUPRINT_TIMEOUT."""
    seconds = environment.timeout()
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise UserError(f"{late()} within {seconds} s (BLEUPRINT_TIMEOUT)")
        time.sleep(POLL_SECONDS)


def _peer_lost(rank: int, size: int, what: str, error: RuntimeError) -> PeerLost:
    """The error of gloo, NCCL or the store in one line, without source positions and advice."""
    reason = re.sub(
        r"^\[\S+:\d+\] |(?<=^NCCL error) in: \S+(?=,)", "", str(error).partition("\n")[0]
    )
    reason = reason.partition(". This is typically")[0]
    if last := re.search(r"\nLast error: *\n(.+)", str(error)):  # of NCCL
        reason += f": {last[1]}"
    return PeerLost(f"process {rank} of {size} on {socket.gethostname()} {what}: {reason}")
