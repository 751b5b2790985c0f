"""The job step of a process that `srun` started, read from the variables that SLURM sets."""

import os
import re
from typing import NamedTuple

# Ports for the processes of a step: below those that systems give to outgoing connections.
_LOWEST_PORT = 10_000
_PORT_COUNT = 20_000
# The difference between the ports of jobs with neighboring numbers, so that their first 31 steps
# have different ports.
_PORTS_BETWEEN_JOBS = 31


class JobStepTask(NamedTuple):
    """One of the processes of a SLURM job step, which SLURM calls tasks.

    Attributes:
        rank: The rank among all tasks of the step, from 0.
        size: The number of tasks of the step.
        local_rank: The rank among the tasks on the same node, from 0.
    """

    rank: int
    size: int
    local_rank: int


def job_step_task() -> JobStepTask | None:
    """Return which of several SLURM tasks this process is.

    `srun`, the command of SLURM, starts several copies of a command, which it calls tasks. It tells
    each its rank in environment variables.

    Returns:
        The task; None if srun has started only this process, or has not started it.
    """
    size = os.environ.get("SLURM_STEP_NUM_TASKS")
    is_batch_script = os.environ.get("ENVIRONMENT") == "BATCH"
    if size is None and not is_batch_script:
        # SLURM_NTASKS is the number of processes, except in a batch script: the script is a single
        # process, and the variable is the number of tasks that the job may start.
        size = os.environ.get("SLURM_NTASKS")
    rank = os.environ.get("SLURM_PROCID")
    if rank is None or not size or int(size) == 1:
        return None
    local_rank = os.environ.get("SLURM_LOCALID", "0")
    return JobStepTask(int(rank), int(size), int(local_rank))


def node_count() -> int:
    """Return the number of nodes of the job that this process belongs to; 1 without a job."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or 1)


def master_address() -> tuple[str, int]:
    """Return the host and the port at which the processes of a SLURM job step connect.

    All processes compute the same address, without communication. The host is the first in the
    step's list of nodes, where process 0 runs. (SLURM_LAUNCH_NODE_IPADDR is the machine on which
    `srun` was called, perhaps a login node.) The port is computed from the numbers of job and step,
    so that two steps on the same host hardly ever have the same port.
    """
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
    job_id = int(os.environ.get("SLURM_JOB_ID", "0"))
    step_id = int(os.environ.get("SLURM_STEP_ID", "0"))
    port = _LOWEST_PORT + (_PORTS_BETWEEN_JOBS * job_id + step_id) % _PORT_COUNT
    return first_host(nodes) or "localhost", port


def first_host(nodes: str) -> str:
    """Return the first host in a list of hosts as SLURM writes it.

    Args:
        nodes: The list, with ranges in brackets: the first host of `rack[1-2]node[03-05,7],gpu1` is
            `rack1node03`.
    """
    # The first entry ends at a comma outside brackets: `rack[1-2]node[03-05,7]`.
    first_entry = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    assert first_entry is not None  # The pattern also matches an empty text.
    # Replace each pair of brackets by the first number in it, which ends at a comma or a dash.
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first_entry[0])
