"""The meeting of the processes that train together: each learns the host and GPU of all others.

Each process writes what it is into torch's key-value store (`store.connect`), under its rank, and
waits until all ranks are there. If some do not come in time, the message names them.
"""

import json
import os
import sys
import uuid

from torch.distributed.distributed_c10d import Store

from bleuprint.runtime.distributed.gpus import Member
from bleuprint.runtime.distributed.ranks import ProcessRank
from bleuprint.runtime.distributed.store import wait_until
from bleuprint.runtime.errors import UserError

# The key under which process 0 publishes the command that started it.
_COMMAND_KEY = "command"


def exchange_members(store: Store, process: ProcessRank, member: Member) -> list[Member]:
    """Tell all other processes the host and GPU of this one, and wait until all have done so.

    Each process writes its host and GPU into the store under its rank. Then it polls the store for
    the other ranks. The store could wait by itself, but would not tell which processes are missing.

    Args:
        store: torch's key-value store, which all processes have opened.
        process: The rank of this process.
        member: The host and the GPU of this process.

    Returns:
        The hosts and GPUs of all processes, in the order of their ranks.

    Raises:
        UserError: Some processes did not join in time, the store belongs to another command, or
            another process has the same rank.
    """
    _check_command(store, process)
    own_key = _member_key(process.rank)
    # The random number makes the entry unique. If the store contains another entry at the end,
    # another process has the same rank.
    own_entry = json.dumps([uuid.uuid4().hex, *member])
    store.set(own_key, own_entry)
    wait_until(
        is_done=lambda: not _absent_ranks(store, process.size),
        describe_missing=lambda: _missing_processes(store, process.size),
    )
    if store.get(own_key).decode() != own_entry:
        raise UserError(f"RANK is {process.rank} in two processes. Give each process its own rank")
    members = []
    for rank in range(process.size):
        _random_number, *fields = json.loads(store.get(_member_key(rank)))
        members.append(Member(*fields))
    return members


def _check_command(store: Store, process: ProcessRank) -> None:
    """Raise UserError unless process 0 was started by the same command as this process.

    If two trainings are started with the same MASTER_PORT, a process may find process 0 of the
    other training. So process 0 writes its command and the number of processes into the store, and
    the other processes compare them with their own.
    """
    own_command = json.dumps([process.size, sys.argv[1:]])
    if process.rank == 0:
        store.set(_COMMAND_KEY, own_command)
    wait_until(
        is_done=lambda: store.check([_COMMAND_KEY]),
        describe_missing=lambda: _missing_processes(store, process.size),
    )
    command = store.get(_COMMAND_KEY).decode()
    if command == own_command:
        return
    size, arguments = json.loads(command)
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    raise UserError(
        f"{process} ({' '.join(sys.argv[1:])}) found process 0 of {size} of another command "
        f"({' '.join(arguments)}) at {address}. Give each command its own MASTER_PORT, "
        "and all its processes the same WORLD_SIZE"
    )


def _member_key(rank: int) -> str:
    """Return the key under which the process with this rank publishes its host and GPU."""
    return f"member/{rank}"


def _absent_ranks(store: Store, size: int) -> list[int]:
    """Return the ranks, of `size` processes, that have not published their host and GPU yet."""
    return [rank for rank in range(size) if not store.check([_member_key(rank)])]


def _missing_processes(store: Store, size: int) -> str:
    """Say which processes have not joined: `processes 2, 3 of 4 did not join`.

    Args:
        store: The store, in which the other processes have written their entries.
        size: The number of all processes.
    """
    ranks = ", ".join(str(rank) for rank in _absent_ranks(store, size))
    return f"processes {ranks} of {size} did not join"
