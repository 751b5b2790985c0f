"""The rank of a process among the processes that train together, as their launcher sets it.

Launchers pass the rank in environment variables. They are set by torchrun, by SLURM, or by a user
who starts the processes by hand. A wrong value ends the process with one line, before it waits for
the others in vain.
"""

import os
from dataclasses import dataclass

from bleuprint.runtime import environment
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.errors import UserError

# The highest port number of TCP.
_HIGHEST_PORT = 65_535


@dataclass(frozen=True)
class ProcessRank:
    """The rank of a process among the processes that train together.

    Attributes:
        rank: The rank among all processes, from 0.
        size: The number of all processes.
        local_rank: The rank among the processes of the same machine, from 0.
    """

    rank: int
    size: int
    local_rank: int

    def __str__(self) -> str:
        return f"process {self.rank} of {self.size}"


def is_launched() -> bool:
    """Return whether a launcher (torchrun, srun or ours) has started this and other processes."""
    return "WORLD_SIZE" in os.environ or slurm.job_step_task() is not None


def rank_from_launcher() -> ProcessRank:
    """Return the rank of this process, as the launcher of the processes has set it.

    There are three cases:
    - torchrun, our own launcher, or a user has set WORLD_SIZE and RANK.
    - SLURM has started the process and has set variables of its own. SLURM does not set the address
      at which the processes meet, so this function does: MASTER_ADDR and MASTER_PORT.
    - No launcher has started the process: it trains alone, with rank 0 of 1.

    Raises:
        UserError: A variable is missing or wrong; the message names the variable and its value.
    """
    if "WORLD_SIZE" in os.environ:
        return _rank_from_variables()
    task = slurm.job_step_task()
    if task is None:
        return ProcessRank(rank=0, size=1, local_rank=0)
    _set_slurm_address()
    return ProcessRank(task.rank, task.size, task.local_rank)


def _rank_from_variables() -> ProcessRank:
    """Return the rank that a launcher has set in WORLD_SIZE, RANK and LOCAL_RANK.

    MASTER_ADDR and MASTER_PORT, the address at which the processes meet, are checked as well. So a
    mistake is reported before this process occupies a GPU.

    Raises:
        UserError: A variable is missing or wrong; the message names it.
    """
    size = environment.launcher_number("WORLD_SIZE", lowest=1)
    if size > 1:
        for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
            if not os.environ.get(name):
                raise UserError(
                    f"WORLD_SIZE is {size}, but {name} is not set. Start the command by torchrun"
                )
    rank = environment.launcher_number("RANK", lowest=0, default=0)
    if rank >= size:
        raise UserError(f"RANK is {rank}, but WORLD_SIZE is {size}. Ranks are 0 to {size - 1}")
    local_rank = environment.launcher_number("LOCAL_RANK", lowest=0, default=0)
    if size > 1:
        master_port()  # Raises UserError if MASTER_PORT is wrong.
    return ProcessRank(rank, size, local_rank)


def _set_slurm_address() -> None:
    """Set MASTER_ADDR and MASTER_PORT for a SLURM job step, unless the user has set them."""
    host, port = slurm.master_address()
    os.environ.setdefault("MASTER_ADDR", host)
    os.environ.setdefault("MASTER_PORT", str(port))


def master_port() -> int:
    """Return the number in MASTER_PORT; raise UserError if it is not a port number."""
    return environment.launcher_number("MASTER_PORT", lowest=1, highest=_HIGHEST_PORT)
