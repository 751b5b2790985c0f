"""The group of processes that train one model together: one process a GPU, or several on CPUs.

The number of processes changes results only by rounding. So params.yaml does not set it: it comes
from the machine, from BLEUPRINT_PROCESSES, or from torchrun or SLURM's srun.

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
    claim_device,
    find_slowdowns,
    gpu_count,
)
from bleuprint.runtime.distributed.ranks import ProcessRank, rank_from_launcher
from bleuprint.runtime.distributed.rendezvous import exchange_members
from bleuprint.runtime.distributed.store import connect
from bleuprint.runtime.errors import PeerLost, UserError, print_message
from bleuprint.runtime.launcher import end_with_launcher
from bleuprint.runtime.machine_errors import describe_machine_error

# The most bytes of a text that processes show each other.
_TEXT_BYTES = 1 << 14
# The number of hexadecimal digits of a hash by which texts are compared.
_EXACT_HASH_DIGITS = 12


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
        """Return whether this process, the one with rank 0, writes files and messages."""
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
        """Begin to sum a tensor over all processes, in place, and return before the sum is ready.

        Meanwhile this process can compute other things. All processes must begin the same sums in
        the same order.

        Args:
            tensor: The summand of this process. Do not read or change it before the `wait()` of the
                returned object has ended.
        """
        if self.size == 1:
            return PendingSum()
        device = tensor.device
        with self._raising_peer_lost(device):
            work = distributed.all_reduce(tensor, async_op=True)
        return PendingSum(work, lambda: self._raising_peer_lost(device))

    def any(self, is_true: bool) -> bool:
        """Return whether something is true on at least one process; all get the same answer.

        The answers are summed on the CPUs, so that no process has to wait for its GPU.

        Args:
            is_true: Whether it is true on this process.
        """
        if self.size == 1:
            return is_true
        true_count = self.all_reduce(torch.tensor(float(is_true)))
        return bool(true_count)

    def broadcast(self, number: float) -> float:
        """Send the number of process 0 to all processes, and return it on each of them.

        Args:
            number: The number to send; the other processes' own numbers are ignored.
        """
        if self.size == 1:
            return float(number)
        # A sum sends it, to which all processes except process 0 add 0.
        summand = torch.tensor(number if self.is_main else 0, dtype=torch.float64)
        return float(self.all_reduce(summand))

    def differs(self, text: str) -> bool:
        """Return whether a text differs between processes; all processes get the same answer.

        Each process compares a hash of its text with the hash of process 0.

        Args:
            text: The text of this process.
        """
        digest = hashlib.sha256(text.encode()).hexdigest()
        # `broadcast` sends a float64, which represents whole numbers up to 53 bits exactly. 12
        # hexadecimal digits are 48 bits.
        text_hash = int(digest[:_EXACT_HASH_DIGITS], 16)
        return self.any(text_hash != self.broadcast(text_hash))

    def gather(self, text: str) -> list[str]:
        """Return the texts of all processes, in the order of their ranks, on all processes.

        Args:
            text: The text of this process; it is cut after 16 kB of UTF-8.
        """
        if self.size == 1:
            return [text]
        # A table of bytes with a row for each process. Each process fills its own row and leaves
        # zeros in the other rows, so that the sum over all processes has all texts.
        rows = torch.zeros(self.size, _TEXT_BYTES, dtype=torch.uint8)
        encoded = bytearray(text.encode()[:_TEXT_BYTES])
        if encoded:
            rows[self.rank, : len(encoded)] = torch.frombuffer(encoded, dtype=torch.uint8)
        self.all_reduce(rows)
        texts = []
        for row in rows:
            row_bytes = row.numpy().tobytes().rstrip(b"\0")
            # The cut may be inside a character, whose bytes are then ignored.
            texts.append(row_bytes.decode(errors="ignore"))
        return texts

    def process_names(self) -> list[str]:
        """Return the name of each process for a message: its rank and its host."""
        hosts = self.gather(socket.gethostname())
        return [f"process {rank} of {self.size} on {host}" for rank, host in enumerate(hosts)]

    @contextmanager
    def raise_together(self) -> Iterator[None]:
        """Raise an error on all processes if it occurs on one of them in the `with` block.

        If only one process ended with an error, the others would wait for it in vain. Do not
        communicate with other processes inside the block.

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
        """Turn errors of communication in the block into PeerLost: another process has ended.

        Args:
            device: The device of the tensor that is sent. Tensors on a CPU are sent by the library
                gloo, which raises RuntimeError. Tensors on a GPU are sent by NCCL, whose errors
                are of the class DistError.
        """
        try:
            yield
        except RuntimeError as error:
            if device.type == "cuda" and not isinstance(error, distributed.DistError):
                raise  # The GPU itself has failed, for example for lack of memory.
            raise _peer_lost(self.rank, self.size, "lost another process", error) from None


@dataclass(frozen=True)
class PendingSum:
    """A sum over all processes that is still being computed.

    Attributes:
        work: torch's handle of the sum; None if there is only one process, and nothing to sum.
        raising_peer_lost: A function that returns the context in which to wait. It raises PeerLost
            if another process has ended.
    """

    work: distributed.Work | None = None
    raising_peer_lost: Callable[[], AbstractContextManager[None]] = nullcontext

    def wait(self) -> None:
        """Wait until the tensor contains the sum.

        For a tensor on a CPU, this process waits. For a tensor on a GPU, the process goes on, and
        only the GPU's later work (its current stream) waits.

        Raises:
            PeerLost: Another process has ended or does not answer.
        """
        if self.work is not None:
            with self.raising_peer_lost():
                self.work.wait()


def init_process_group() -> Group:
    """Join the processes that train one model together, and return their group.

    A process that was started alone gets a group with one member.

    Raises:
        UserError: Some processes do not come within BLEUPRINT_TIMEOUT, or a process has no GPU of
            its own.
        PeerLost: Another process has ended meanwhile.
    """
    end_with_launcher()
    process = rank_from_launcher()
    device = _choose_device(process)
    member = claim_device(device, str(process))
    members = [member]
    if process.size > 1:
        members = _join_group(process, device, member)
    if process.rank == 0:
        for note in find_slowdowns(members):
            print_message(note, "note")
    hosts = [peer.host for peer in members]
    gpu_names = [peer.gpu_name for peer in members if peer.gpu_name]
    return Group(
        rank=process.rank,
        size=process.size,
        device=device,
        local_size=hosts.count(member.host),
        gpus=tuple(dict.fromkeys(gpu_names)),
    )


def _choose_device(process: ProcessRank) -> torch.device:
    """Return the GPU on which this process computes, or the CPU of a machine without GPUs.

    The processes of a machine take its GPUs in the order of their ranks.
    """
    gpus = gpu_count()
    if gpus == 0:
        return torch.device("cpu")
    # SLURM may show each process only its own GPU. Then `gpus` is 1, and the number is 0 for every
    # rank.
    return torch.device("cuda", process.local_rank % gpus)


def _join_group(process: ProcessRank, device: torch.device, member: Member) -> list[Member]:
    """Connect to the other processes, exchange hosts and GPUs with them, and join torch's group.

    Args:
        process: The rank of this process.
        device: The GPU or CPU on which this process computes.
        member: The host and the GPU of this process.

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
        # End this process when the communication between GPUs fails. torch then stores an error,
        # which only this private object can return.
        backend = _get_default_group()._get_backend(device)
        nccl.end_process_after_error(backend.get_error, f"{process} on {member.host}")
    return members


def _peer_lost(rank: int, size: int, event: str, error: RuntimeError) -> PeerLost:
    """Return the error that this process has lost another one, with the reason in one line.

    The reason is taken from the message of the library that communicates, gloo or NCCL.

    Args:
        rank: The rank of this process.
        size: The number of processes.
        event: What happened to this process, such as "lost another process".
        error: The error of the library. Positions in source files and general advice are removed
            from its message.
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
