"""The processes that train one model together, one a GPU, or any number on CPUs.

Their number changes no result beyond rounding, so it comes from the machine, from
BLEUPRINT_PROCESSES, or from torchrun or SLURM's srun if they start this command; never from
params.yaml or the command that DVC records.
"""

import hashlib
import os
import re
import socket
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from bleuprint.runtime import environment, errors
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.distributed.launch import end_with_launcher, launch, launched
from bleuprint.runtime.distributed.lifeline import Lifeline, end_torchrun, patience
from bleuprint.runtime.errors import UserError

# For a process that hangs: one that has died is noticed by the lifeline.
_TIMEOUT = timedelta(hours=1)

_ON_CPUS = "set CUDA_VISIBLE_DEVICES to nothing to train on CPUs"


@dataclass(frozen=True)
class Group:
    """This process's place among those that train together; `local` of them on its machine."""

    rank: int
    size: int
    device: torch.device
    local: int = 1
    lifeline: Lifeline | None = field(default=None, repr=False, compare=False)

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up `tensor` over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether `flag` is set on any process; the same answer on all, once all have asked."""
        return bool(self.sum(torch.tensor(float(flag), device=self.device)))

    def of_first(self, number: float) -> float:
        """The number that the first process has."""
        mine = torch.tensor(number if self.first else 0, dtype=torch.float64, device=self.device)
        return float(self.sum(mine))

    def differs(self, text: str) -> bool:
        """Whether `text` is another one on some process; the same answer on all of them."""
        own = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)  # a float64 holds 48 bits
        return self.any(own != self.of_first(own))

    def wait(self) -> None:
        """Go on when all processes have come here."""
        self.any(False)

    def close(self) -> None:
        """Leave the others, which may end later."""
        if self.lifeline:
            self.lifeline.leave(well=True)
        if self.size > 1:
            distributed.destroy_process_group()


def relaunch_if_several() -> None:
    """Run this command as several processes where they are wanted and none has started us yet.

    Then this one starts and watches them, and does not come back.
    """
    if "WORLD_SIZE" in os.environ or slurm.task():
        return
    gpus = _gpus()
    count = environment.processes() or max(1, gpus)
    if gpus and count > gpus:
        raise UserError(
            f"BLEUPRINT_PROCESSES is {count}, and each process needs a GPU of its own: "
            f"PyTorch finds {gpus}; {_ON_CPUS}"
        )
    if count > 1:
        sys.stdout.flush()
        sys.exit(launch(count))


def join() -> Group:
    """Join the processes that were started together; alone if this one was started alone."""
    rank, size, local = _place()
    if size == 1:
        return Group(0, 1, _device(local))
    if launched():
        end_with_launcher()
    try:
        shared, *_ = next(rendezvous("env://", rank, size, timeout=timedelta(seconds=patience())))
        lifeline = Lifeline(rank, size, shared, silent=launched())
        errors.consult(lifeline.verdict)
        store = lifeline.store
        device = _device(local)
        local = _compare_devices(device, rank, size, store)
        distributed.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=size,
            timeout=_TIMEOUT,
            device_id=device if device.type == "cuda" else None,
        )
    except distributed.DistError as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        reason = str(error).partition("\n")[0]
        end_torchrun()
        raise UserError(
            f"process {rank} of {size} cannot join the others at {where}: {reason}"
        ) from None
    return Group(rank, size, device, local, lifeline)


def _place() -> tuple[int, int, int]:
    """This process's rank, the number of all, and its rank on this machine."""
    if "WORLD_SIZE" not in os.environ:
        task = slurm.task()
        if task is None:
            return 0, 1, 0
        host, port = slurm.master()
        os.environ.setdefault("MASTER_ADDR", host)
        os.environ.setdefault("MASTER_PORT", str(port))
        return task.rank, task.size, task.local
    size = os.environ["WORLD_SIZE"]
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if size != "1" and not os.environ.get(name):
            raise UserError(f"WORLD_SIZE is {size}, but {name} is not set: start it by torchrun")
    return int(os.environ.get("RANK", "0")), int(size), int(os.environ.get("LOCAL_RANK", "0"))


def _gpus() -> int:
    """The GPUs that this process may use; all that CUDA_VISIBLE_DEVICES names must be there."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    # CUDA reads as far as the first that is no device: "-1" or "none" hides them all.
    named = list(takewhile(re.compile(r"\d+|(GPU|MIG)-.+").fullmatch, names.split(",")))
    if len(named) > count:
        raise UserError(
            f"CUDA_VISIBLE_DEVICES is {names!r}, but PyTorch finds {count} such GPUs; {_ON_CPUS}"
        )
    return count


def _device(local: int) -> torch.device:
    """The device of the process that is number `local` on its machine."""
    gpus = _gpus()
    if not gpus:
        return torch.device("cpu")
    # under SLURM each process may see its own GPU only, whatever its number
    device = torch.device("cuda", local % gpus)
    torch.cuda.set_device(device)
    return device


def _compare_devices(device: torch.device, rank: int, size: int, store: Store) -> int:
    """Fail, on every process, where one has no GPU that others have, or not for itself alone.

    Sums over processes would hang, or fail in words that only NCCL's makers understand. Returns how
    many processes there are on this machine.
    """
    own = ""
    if device.type == "cuda":
        own = str(torch.cuda.get_device_properties(device).uuid)
    store.set(f"device/{rank}", f"{socket.gethostname()} {own}")
    told = [store.get(f"device/{other}").decode().split(" ") for other in range(size)]
    gpus = [gpu for _, gpu in told]
    local = [host for host, _ in told].count(socket.gethostname())
    if not any(gpus):
        return local
    for other, (host, gpu) in enumerate(told):
        if not gpu:
            raise UserError(f"process {other} of {size}, on {host}, finds no GPU; others do")
        if (first := gpus.index(gpu)) < other:
            raise UserError(
                f"processes {first} and {other} of {size} are given the same GPU of {host}: "
                f"start no more processes than there are GPUs; {_ON_CPUS}"
            )
    return local
