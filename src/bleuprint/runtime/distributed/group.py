"""The processes that train one model together: one a GPU, or any number on CPUs.

Their number changes no result beyond rounding, so it comes from the machine, from
BLEUPRINT_PROCESSES, or from torchrun or SLURM's srun; never from params.yaml or a command that DVC
records.
"""

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import _get_default_group

from bleuprint.runtime import environment
from bleuprint.runtime.distributed import nccl, rendezvous, slurm
from bleuprint.runtime.distributed.gpus import Member, check_gpus, find_slowdowns, gpu_count, occupy
from bleuprint.runtime.distributed.rendezvous import ProcessRank
from bleuprint.runtime.errors import PeerLost, UserError, print_message
from bleuprint.runtime.launcher import end_with_launcher
from bleuprint.runtime.machine_errors import describe_machine_error

# The most bytes of a text that processes show each other.
_TEXT_BYTES = 1 << 14


@dataclass(frozen=True)
class Group:
    """This process's place among those that train together; `local_size` of them on its machine.

    `gpus`: the names of the GPUs of all processes, each once.
    """

    rank: int
    size: int
    device: torch.device
    local_size: int = 1
    gpus: tuple[str, ...] = ()

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum `tensor` over all processes, in place. Raises PeerLost."""
        self.start_all_reduce(tensor).wait()
        return tensor

    def start_all_reduce(self, tensor: Tensor) -> "PendingSum":
        """Begin to sum `tensor` over all processes, in place; neither read nor change it before
        the result's `wait()`. All processes begin the same sums in the same order.
        """
        if self.size == 1:
            return PendingSum()
        with self._naming_lost_peers(tensor.device):
            work = distributed.all_reduce(tensor, async_op=True)
        return PendingSum(work, lambda: self._naming_lost_peers(tensor.device))

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

    def gather(self, text: str) -> list[str]:
        """The text of each process, in the order of their ranks; the same list on all of them.

        A text longer than 16 kB is cut.
        """
        if self.size == 1:
            return [text]
        rows = torch.zeros(self.size, _TEXT_BYTES, dtype=torch.uint8)
        encoded = bytearray(text.encode()[:_TEXT_BYTES])
        if encoded:
            rows[self.rank, : len(encoded)] = torch.frombuffer(encoded, dtype=torch.uint8)
        self.all_reduce(rows)
        texts = [row.numpy().tobytes().rstrip(b"\0") for row in rows]
        return [each.decode(errors="ignore") for each in texts]

    def process_names(self) -> list[str]:
        """The name of each process for a message: its rank and its host."""
        hosts = self.gather(socket.gethostname())
        return [f"process {rank} of {self.size} on {host}" for rank, host in enumerate(hosts)]

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise on all processes what one of them meets inside: an error of the user or machine.

        The message names the process that met it, unless all of them met the same. Inside, no
        process may communicate with the others.
        """
        problem = ""
        try:
            yield
        except (UserError, OSError) as error:
            if self.size == 1:
                raise
            problem = describe_machine_error(error) or str(error)
        if not self.any(bool(problem)):
            return
        problems = self.gather(problem)
        if len(set(problems)) == 1:
            raise UserError(problems[0])
        for name, each in zip(self.process_names(), problems, strict=True):
            if each:
                raise UserError(f"{name}: {each}")

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
class PendingSum:
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


def is_launched() -> bool:
    """Whether this is one of several processes that torchrun, srun or `launch` has started."""
    return "WORLD_SIZE" in os.environ or slurm.job_step_task() is not None


def init_process_group() -> Group:
    """Join the processes that were started together; a group of one if this one is alone.

    Raises UserError if some do not come within BLEUPRINT_TIMEOUT, or have no GPU for themselves.
    """
    end_with_launcher()
    process = rendezvous.rank_from_launcher()
    gpus = gpu_count()
    # under SLURM each process may see its own GPU only, whatever its rank
    device = torch.device("cuda", process.local_rank % gpus) if gpus else torch.device("cpu")
    member = occupy(device, str(process))
    members = _join(process, device, member) if process.size > 1 else [member]
    if process.rank == 0:
        for note in find_slowdowns(members):
            print_message(note, "note")
    hosts = [each.host for each in members]
    names = [each.name for each in members if each.name]
    return Group(
        rank=process.rank,
        size=process.size,
        device=device,
        local_size=hosts.count(member.host),
        gpus=tuple(dict.fromkeys(names)),
    )


def _join(process: ProcessRank, device: torch.device, member: Member) -> list[Member]:
    """Join the others of a group of several; returns what each of them has published."""
    gpu = device.type == "cuda"
    try:
        store = rendezvous.connect(process)
        members = rendezvous.exchange_members(store, process, member)
        check_gpus(members)
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if gpu else "gloo",
            timeout=timedelta(seconds=environment.timeout_seconds()),
            world_size=process.size,
            rank=process.rank,
            store=store,
            device_id=device if gpu else None,
        )
    except RuntimeError as error:
        raise _peer_lost(process.rank, process.size, "cannot join the others", error) from None
    if gpu:
        backend = _get_default_group()._get_backend(device)
        nccl.watch(backend.get_error, f"{process} on {member.host}")
    return members


def _peer_lost(rank: int, size: int, what: str, error: RuntimeError) -> PeerLost:
    """The error of gloo, NCCL or the store in one line, without source positions and advice."""
    reason = re.sub(
        r"^\[\S+:\d+\] |(?<=^NCCL error) in: \S+(?=,)", "", str(error).partition("\n")[0]
    )
    reason = reason.partition(". This is typically")[0]
    if last := re.search(r"\nLast error: *\n(.+)", str(error)):  # of NCCL
        reason += f": {last[1]}"
    return PeerLost(f"process {rank} of {size} on {socket.gethostname()} {what}: {reason}")
