"""What SLURM tells a process about its job step, where `srun` started several processes."""

import os
import re
from dataclasses import dataclass

_LOWEST_PORT, _PORTS = 10_000, 20_000  # below those that systems give to outgoing connections


@dataclass(frozen=True)
class Task:
    """A process's place in its job step."""

    rank: int
    size: int
    local: int


def task() -> Task | None:
    """This process's place among several that `srun` started; None if it did not."""
    size = os.environ.get("SLURM_STEP_NUM_TASKS")
    if size is None and os.environ.get("ENVIRONMENT") != "BATCH":
        # A batch script sees the tasks that its job may start, and itself as number 0.
        size = os.environ.get("SLURM_NTASKS")
    rank = os.environ.get("SLURM_PROCID")
    if rank is None or int(size or 1) == 1:
        return None
    return Task(int(rank), int(size or 1), int(os.environ.get("SLURM_LOCALID", "0")))


def nodes() -> int:
    """How many nodes the job has that this process is in; 1 if it is in none."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or 1)


def master() -> tuple[str, int]:
    """Where the step's processes meet: the host of its process 0 and a port.

    The step's list of nodes begins with that host. SLURM_LAUNCH_NODE_IPADDR would not do: it is the
    machine on which `srun` was called, perhaps a login node.
    """
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
    job, step = (int(os.environ.get(f"SLURM_{what}_ID", "0")) for what in ("JOB", "STEP"))
    return first_host(nodes) or "localhost", _LOWEST_PORT + (31 * job + step) % _PORTS


def first_host(nodes: str) -> str:
    """The first host of a list such as `rack[1-2]node[03-05,7],gpu1`: rack1node03."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first[0] if first else "")
