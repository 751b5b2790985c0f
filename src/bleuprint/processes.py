"""The processes that train one model together, one a GPU, or any number on CPUs.

Their number changes no result beyond rounding, so it comes from the machine or from
BLEUPRINT_PROCESSES, never from params.yaml or the command that DVC records.
"""

import os
import sys
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, distributed

from bleuprint import environment

_TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True)
class Group:
    """This process's place among those that train together."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up `tensor` over all processes, in place."""
        if self.size > 1:
            distributed.all_reduce(tensor)
        return tensor

    def wait(self) -> None:
        if self.size > 1:
            distributed.barrier()

    def close(self) -> None:
        if self.size > 1:
            distributed.destroy_process_group()


def relaunch_if_several() -> None:
    """Replace this process by torchrun where several are wanted and none has started us yet."""
    if "WORLD_SIZE" in os.environ:
        return
    count = environment.processes() or max(1, torch.cuda.device_count())
    if count == 1:
        return
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    # torchrun would otherwise give each process a single thread
    threads = max(1, len(os.sched_getaffinity(0)) // count)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    sys.stdout.flush()
    os.execv(sys.executable, [*torchrun, f"--nproc-per-node={count}", *sys.argv])


def join() -> Group:
    """Join the processes that torchrun started; alone if it did not start us."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
    if size > 1:
        backend = "nccl" if device.type == "cuda" and _a_gpu_each() else "gloo"
        distributed.init_process_group(backend, timeout=_TIMEOUT)
    return Group(rank, size, device)


def _a_gpu_each() -> bool:
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()
