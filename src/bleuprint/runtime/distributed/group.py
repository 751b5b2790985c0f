"""The group of processes that train one model together: one process a GPU, or several on CPUs.

The number of processes changes no result beyond rounding. So it is no setting: it comes from the
machine, from BLEUPRINT_PROCESSES, or from torchrun or SLURM's srun.

All processes call the methods of their `Group` in the same order: each call waits until the others
make the same call.
"""

import hashlib
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
from bleuprint.runtime.distributed import nccl
from bleuprint.runtime.distributed.gpus import (
    Member,
    check_gpus,
    find_slowdowns,
    gpu_count,
    occupy,
)
from bleuprint.runtime.distributed.ranks import ProcessRank, rank_from_launcher
from bleuprint.runtime.distributed.rendezvous import exchange_members
from bleuprint.runtime.distributed.store import connect
from bleuprint.runtime.errors import PeerLost, UserError, print_message
from bleuprint.runtime.launcher import end_with_launcher
from bleuprint.runtime.machine_errors import describe_machine_error

# The most bytes of a text that processes show each other.
_TEXT_BYTES = 1 << 14


@dataclass(frozen=True)
class Group:
    """The group of processes that train together, as one of them sees it.

    Attributes:
        rank: The rank of this process, from 0.
        size: The number of processes.
        device: The device on which this process computes.
        local_size: The number of processes on the same machine.
        gpus: The names of the GPUs of all processes, each name once.
    """

    rank: int
    size: int
    device: torch.device
    local_size: int = 1
    gpus: tuple[str, ...] = ()

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and messages: the one with rank 0."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place.

        Args:
            tensor: The summand of this process; all processes have the same shape and type.

        Returns:
            The same tensor, with the sum.

        Raises:
            PeerLost: Another process has ended or does not answer.
        """
        self.start_all_reduce(tensor).wait()
        return tensor

    def start_all_reduce(self, tensor: Tensor) -> "PendingSum":
        """Begin to sum a tensor over all processes, in place, while this process goes on.

        The tensor must neither be read nor changed before `wait()` of the result. All processes
        begin the same sums in the same order.
        """
        if self.size == 1:
            return PendingSum()
        device = tensor.device
        with self._raising_peer_lost(device):
            work = distributed.all_reduce(tensor, async_op=True)
        return PendingSum(work, lambda: self._raising_peer_lost(device))

    def any(self, flag: bool) -> bool:
        """Return whether `flag` is set on any process; the answer is the same on all of them.

        This method and the following ones communicate by the CPUs, so that no process waits for
        what its GPU computes.
        """
        if self.size == 1:
            return flag
        set_flags = self.all_reduce(torch.tensor(float(flag)))
        return bool(set_flags)

    def broadcast(self, number: float) -> float:
        """Return the number that the process with rank 0 has, on all processes."""
        if self.size == 1:
            return float(number)
        # The sum over all processes, of which only rank 0 has a summand.
        summand = torch.tensor(number if self.is_main else 0, dtype=torch.float64)
        return float(self.all_reduce(summand))

    def differs(self, text: str) -> bool:
        """Return whether a text differs between processes; all processes get the same answer."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        # The first 48 bits: a float64, which `broadcast` sends, represents them exactly.
        text_hash = int(digest[:12], 16)
        return self.any(text_hash != self.broadcast(text_hash))

    def gather(self, text: str) -> list[str]:
        """Return the text of each process, in the order of their ranks, on all processes.

        A text longer than 16 kB is cut.
        """
        if self.size == 1:
            return [text]
        # Each process writes its own row, (size, _TEXT_BYTES); the sum has all rows.
        rows = torch.zeros(self.size, _TEXT_BYTES, dtype=torch.uint8)
        encoded = bytearray(text.encode()[:_TEXT_BYTES])
        if encoded:
            rows[self.rank, : len(encoded)] = torch.frombuffer(encoded, dtype=torch.uint8)
        self.all_reduce(rows)
        texts = []
        for row in rows:
            row_bytes = row.numpy().tobytes().rstrip(b"\0")
            texts.append(row_bytes.decode(errors="ignore"))
        return texts

    def process_names(self) -> list[str]:
        """Return the name of each process for a message: its rank and its host."""
        hosts = self.gather(socket.gethostname())
        return [f"process {rank} of {self.size} on {host}" for rank, host in enumerate(hosts)]

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise on all processes the error that one of them meets in the block.

        Without this, the other processes would wait for the one that has ended. In the block, no
        process may communicate with the others.

        Raises:
            UserError: The block raised an error of the user or of the machine. The message names
                the process that met it, unless all processes met the same error.
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
        for name, problem_of_process in zip(self.process_names(), problems, strict=True):
            if problem_of_process:
                raise UserError(f"{name}: {problem_of_process}")

    def barrier(self) -> None:
        """Wait until all processes have called this method."""
        self.any(False)

    def close(self) -> None:
        """Leave the group; other processes may still have work to do."""
        if self.size > 1:
            distributed.destroy_process_group()

    @contextmanager
    def _raising_peer_lost(self, device: torch.device) -> Iterator[None]:
        """Raise PeerLost for the errors of communication in the block.

        Args:
            device: The device of the tensor that is sent. CPU tensors are sent by gloo, which
                raises plain RuntimeErrors; GPU tensors by NCCL, whose errors have their own class.
        """
        try:
            yield
        except RuntimeError as error:
            if device.type == "cuda" and not isinstance(error, distributed.DistError):
                raise
            raise _peer_lost(self.rank, self.size, "lost another process", error) from None


@dataclass(frozen=True)
class PendingSum:
    """A sum over all processes that has begun and not ended; in a group of one, nothing.

    Attributes:
        work: torch's handle of the sum; None in a group of one.
        raising_peer_lost: Returns the context in which to wait, which raises PeerLost.
    """

    work: distributed.Work | None = None
    raising_peer_lost: Callable[[], AbstractContextManager[None]] = nullcontext

    def wait(self) -> None:
        """Wait until the tensor has the sum.

        For a tensor of a CPU, this process waits. For a tensor of a GPU, only the GPU's current
        stream waits.

        Raises:
            PeerLost: Another process has ended or does not answer.
        """
        if self.work is not None:
            with self.raising_peer_lost():
                self.work.wait()


def init_process_group() -> Group:
    """Join the processes that were started together; a process that was started alone is a group.

    Raises:
        UserError: Some processes do not come within BLEUPRINT_TIMEOUT, or a process has no GPU of
            its own.
        PeerLost: Another process has ended meanwhile.
    """
    end_with_launcher()
    process = rank_from_launcher()
    device = _choose_device(process)
    member = occupy(device, str(process))
    members = [member]
    if process.size > 1:
        members = _join_group(process, device, member)
    if process.rank == 0:
        for note in find_slowdowns(members):
            print_message(note, "note")
    hosts = [other.host for other in members]
    gpu_names = [other.gpu_name for other in members if other.gpu_name]
    return Group(
        rank=process.rank,
        size=process.size,
        device=device,
        local_size=hosts.count(member.host),
        gpus=tuple(dict.fromkeys(gpu_names)),
    )


def _choose_device(process: ProcessRank) -> torch.device:
    """Return the GPU with the local rank of this process, or the CPU of a machine without GPUs."""
    gpus = gpu_count()
    if gpus == 0:
        return torch.device("cpu")
    # Under SLURM, each process may see its own GPU only, as number 0, whatever its rank.
    return torch.device("cuda", process.local_rank % gpus)


def _join_group(process: ProcessRank, device: torch.device, member: Member) -> list[Member]:
    """Join the other processes of a group of several.

    Returns:
        The host and the GPU of each process, in the order of their ranks.
    """
    has_gpu = device.type == "cuda"
    try:
        store = connect(process)
        members = exchange_members(store, process, member)
        check_gpus(members)
        distributed.init_process_group(
            backend="cpu:gloo,cuda:nccl" if has_gpu else "gloo",
            timeout=timedelta(seconds=environment.timeout_seconds()),
            world_size=process.size,
            rank=process.rank,
            store=store,
            device_id=device if has_gpu else None,
        )
    except RuntimeError as error:
        raise _peer_lost(process.rank, process.size, "cannot join the others", error) from None
    if has_gpu:
        # torch's public interface does not show the error that its watchdog notes.
        backend = _get_default_group()._get_backend(device)
        nccl.watch(backend.get_error, f"{process} on {member.host}")
    return members


def _peer_lost(rank: int, size: int, event: str, error: RuntimeError) -> PeerLost:
    """Return PeerLost with the reason that an error of gloo, NCCL or the store gives, in one line.

    Args:
        rank: The rank of this process.
        size: The number of processes.
        event: What happened to this process, such as "lost another process".
        error: The error. Positions in source files and general advice in its message are left out.
    """
    message = str(error)
    reason = message.partition("\n")[0]
    # gloo begins with "[FILE:LINE] ", and NCCL with "NCCL error in: FILE:LINE, ".
    reason = re.sub(r"^\[\S+:\d+\] ", "", reason)
    reason = re.sub(r"^NCCL error in: \S+(?=,)", "NCCL error", reason)
    reason = reason.partition(". This is typically")[0]
    last_nccl_error = re.search(r"\nLast error: *\n(.+)", message)
    if last_nccl_error:
        reason += f": {last_nccl_error[1]}"
    return PeerLost(f"process {rank} of {size} on {socket.gethostname()} {event}: {reason}")
