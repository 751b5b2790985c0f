"""The processes that train together, started and ended together: this machine's, or a SLURM job's.

torchrun starts a machine's too, but ends with status 1 whatever happened, and puts a report of its
own around a user's mistake.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

import torch
from torch import distributed

from bleuprint.runtime import environment
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.errors import GONE, TOLD, UserError, say

# Names the launcher to the processes that it has started, by its number.
_LAUNCHER = "BLEUPRINT_LAUNCHER"
# Tells them that `srun` was called by this command.
_SPREAD = "BLEUPRINT_SPREAD"
_LOOPBACK = "127.0.0.1"
_PR_SET_PDEATHSIG = 1  # of Linux's prctl

# Seconds between two looks at the processes, and those that are left to the others when one has
# failed: to let go of what they have open, no more, since without it they cannot go on.
_LOOK, _GRACE = 0.1, 12.0


def spread_over_nodes() -> None:
    """Where this is one process alone in a SLURM job of several nodes: use them all.

    It then has `srun` run this command on each node, once a GPU, and does not come back. SIGTERM is
    passed on as SIGUSR1, since `srun` kills its tasks when it gets SIGTERM itself.
    """
    if _SPREAD in os.environ:
        signal.signal(signal.SIGUSR1, lambda *_: signal.raise_signal(signal.SIGTERM))
    nodes = slurm.nodes()
    if nodes == 1 or "WORLD_SIZE" in os.environ or slurm.task():
        return
    count = environment.processes() or max(1, torch.cuda.device_count())
    threads = max(1, len(os.sched_getaffinity(0)) // count)
    command = [
        "srun",
        "--overlap",  # we may be a step ourselves, which holds all that the job has
        f"--nodes={nodes}",
        f"--ntasks={nodes * count}",
        f"--ntasks-per-node={count}",
        "--kill-on-bad-exit=0",  # they end one another, but for those that still save
        "--cpu-bind=none",
        "--export=ALL",
        *(sys.executable, *sys.orig_argv[1:]),
    ]
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: told.append(number))
    sys.stdout.flush()
    step = subprocess.Popen(
        command,
        env={"OMP_NUM_THREADS": str(threads), **os.environ, _SPREAD: "1"},
        start_new_session=True,
    )
    while step.poll() is None:
        time.sleep(_LOOK)
        if told:
            told.clear()
            step.send_signal(signal.SIGUSR1)
    sys.exit(step.returncode if step.returncode >= 0 else 128 - step.returncode)


def launch(count: int) -> int:
    """Run this command as `count` processes to their end, and return the status for all of them.

    That is the status of the first that failed, which has told why; 0 if none did. A process that
    was killed could not, so that UserError names it. SIGINT and SIGTERM are passed on.
    """
    told: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: told.append(number))
    # The store where they meet is ours, so that no other process can take its port meanwhile.
    listener = socket.create_server((_LOOPBACK, 0))
    port = listener.getsockname()[1]
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        _LOOPBACK,
        port,
        is_master=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )
    processes = [_start(rank, count, store.port) for rank in range(count)]
    first = _watch(processes, told)
    if first is None:
        if any(process.returncode == GONE for process in processes):
            raise UserError(f"the {count} processes have lost one another")
        return 0
    rank, status = first
    if status >= 0:
        if status not in TOLD:
            say(f"process {rank} of {count} ended with status {status}")
        return status
    if -status in told:
        return 128 - status  # it came before there was anything to save
    hint = "; is memory short?" if -status == signal.SIGKILL else ""
    raise UserError(
        f"process {rank} of {count} was ended by signal {-status} ({signal.strsignal(-status)})"
        f"{hint}"
    )


def launched() -> bool:
    """Whether this process was started by `launch`."""
    return _LAUNCHER in os.environ


def end_with_launcher() -> None:
    """From now on this process is killed when its launcher ends, however that comes about."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ[_LAUNCHER]):
        os._exit(GONE)  # it has ended already


def _start(rank: int, count: int, port: int) -> "subprocess.Popen[bytes]":
    # a process would otherwise take all cores
    threads = max(1, len(os.sched_getaffinity(0)) // count)
    defaults = {"OMP_NUM_THREADS": str(threads)}
    if "lo" in (name for _, name in socket.if_nameindex()):
        # by itself gloo takes the interface of the host's name, which may come and go
        defaults["GLOO_SOCKET_IFNAME"] = "lo"
    given = {
        _LAUNCHER: str(os.getpid()),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": _LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the store is the launcher's, not rank 0's
    }
    return subprocess.Popen(
        [sys.executable, *sys.orig_argv[1:]],
        env={**defaults, **os.environ, **given},
        # Ctrl-C on a terminal reaches a whole session; they get it once, from us.
        start_new_session=True,
    )


def _watch(processes: "list[subprocess.Popen[bytes]]", told: list[int]) -> tuple[int, int] | None:
    """Wait for the end of all; the number and status of the first that failed by itself."""
    waiting, passed_on, first, deadline = dict(enumerate(processes)), 0, None, float("inf")
    while waiting:
        time.sleep(_LOOK)
        for number in told[passed_on:]:
            passed_on += 1
            for process in waiting.values():
                process.send_signal(number)
        for rank, process in list(waiting.items()):
            status = process.poll()
            if status is None:
                continue
            del waiting[rank]
            if first is None and status not in (0, GONE):
                first = rank, status
                if status != os.EX_TEMPFAIL:  # with that one they all end by themselves
                    deadline = time.monotonic() + _GRACE
        if time.monotonic() > deadline:
            for process in waiting.values():
                process.kill()
    return first
