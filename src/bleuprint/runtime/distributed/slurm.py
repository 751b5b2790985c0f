"""The job step of a process that `srun` started, read from the variables that SLURM sets."""

import os
import re

_LOWEST_PORT, _PORTS = 10_000, 20_000  # below those that systems give to outgoing connections


def job_step_task() -> tuple[int, int, int] | None:
    """The rank of this process in its job step, their number, and its rank on its node.

    None unless `srun` has started several.
    """
    size = os.environ.get("SLURM_STEP_NUM_TASKS")
    if size is None and os.environ.get("ENVIRONMENT") != "BATCH":
        # In a batch script this is the number of tasks that the job may start.
        size = os.environ.get("SLURM_NTASKS")
    rank = os.environ.get("SLURM_PROCID")
    if rank is None or int(size or 1) == 1:
        return None
    return int(rank), int(size or 1), int(os.environ.get("SLURM_LOCALID", "0"))


def node_count() -> int:
    """The number of nodes of the job that this process belongs to; 1 without a job."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or 1)


def master_address() -> tuple[str, int]:
    """MASTER_ADDR and MASTER_PORT of the step: the host of its task 0, and a port.

    That host is the first in the step's list of nodes. SLURM_LAUNCH_NODE_IPADDR is the machine on
    which `srun` was called, perhaps a login node.
    """
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
    job, step = (int(os.environ.get(f"SLURM_{what}_ID", "0")) for what in ("JOB", "STEP"))
    return first_host(nodes) or "localhost", _LOWEST_PORT + (31 * job + step) % _PORTS


def first_host(nodes: str) -> str:
    """The first host of a list such as `rack[1-2]node[03-05,7],gpu1`: rack1node03."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first[0] if first else "")
