"""The job step of a process that `srun` started, read from the variables that SLURM sets."""

import os
import re
from typing import NamedTuple

# Ports for the processes of a step: below those that systems give to outgoing connections.
_LOWEST_PORT = 10_000
_PORT_COUNT = 20_000
# A prime that spreads the ports of jobs with neighboring numbers, so that their steps do not meet.
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
    """Return the task that this process is; None unless `srun` has started several tasks."""
    size = os.environ.get("SLURM_STEP_NUM_TASKS")
    if size is None and os.environ.get("ENVIRONMENT") != "BATCH":
        # In a batch script, this is the number of tasks that the job may start.
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
    """Return the host and the port at which the tasks of this job step meet.

    The host is that of task 0, the first in the step's list of nodes. The variable
    SLURM_LAUNCH_NODE_IPADDR would be wrong: it is the machine on which `srun` was called, perhaps a
    login node. Each step has a port of its own, which follows from the numbers of job and step, so
    that all tasks of the step compute the same one.
    """
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")
    job_id = int(os.environ.get("SLURM_JOB_ID", "0"))
    step_id = int(os.environ.get("SLURM_STEP_ID", "0"))
    port = _LOWEST_PORT + (_PORTS_BETWEEN_JOBS * job_id + step_id) % _PORT_COUNT
    return first_host(nodes) or "localhost", port


def first_host(nodes: str) -> str:
    """Return the first host of a list of SLURM.

    Args:
        nodes: The list, with ranges in brackets: the first host of `rack[1-2]node[03-05,7],gpu1` is
            rack1node03.
    """
    # The first entry ends at a comma outside brackets.
    first_entry = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    if first_entry is None:
        return ""
    # Each pair of brackets is replaced by the first number in it, which a comma or a dash ends.
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first_entry[0])
