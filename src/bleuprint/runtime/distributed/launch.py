"""The start of the processes that train one model: on this machine, or on the nodes of a SLURM job.

The launcher runs the same command again, several times. It prints the message of the process that
failed first, and exits with its status.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISCHR
from typing import Any, NoReturn

from torch import distributed
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from bleuprint.runtime import environment, processor
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.distributed.gpus import ON_CPUS, gpu_count
from bleuprint.runtime.distributed.ranks import is_launched
from bleuprint.runtime.distributed.store import POLL_SECONDS
from bleuprint.runtime.errors import (
    LAUNCHER_VARIABLE,
    PEER_LOST,
    UserError,
    message_kind,
    print_message,
)
from bleuprint.runtime.files import read_json_object
from bleuprint.runtime.launcher import end_with_launcher
from bleuprint.runtime.machine_errors import explain_kill

_LOOPBACK = "127.0.0.1"
# An environment variable that is set in the tasks that `launch_slurm_step` starts.
_SRUN_VARIABLE = "BLEUPRINT_SRUN"
# When one process fails, the other processes lose it and fail, too (PeerLost). Their errors may be
# recorded before the first failure, by this many seconds at most.
_SECONDS_BEFORE_CAUSE = 5.0


@dataclass(frozen=True)
class ProcessEnd:
    """How one process of a training has ended.

    Attributes:
        status: Its exit status.
        timestamp: The time of its error, in seconds since 1970.
        message: What it left to the launcher to print: a line, a traceback, or nothing.
    """

    status: int
    timestamp: float
    message: str


def start_processes() -> None:
    """Run this command as several processes if needed; return in each process that trains.

    There are three cases:
    - torchrun or srun has started several processes: this process is one of them and trains.
    - There are several GPUs or nodes, or BLEUPRINT_PROCESSES is above 1: this process becomes the
      launcher of the processes that train, and exits after them.
    - This process trains alone.

    Raises:
        UserError: BLEUPRINT_PROCESSES asks for more processes than this machine has GPUs.
    """
    end_with_launcher()
    _terminate_by_other_signals()
    if is_launched():
        return
    gpus = gpu_count()
    count = environment.process_count() or max(1, gpus)
    if gpus and count > gpus:
        raise UserError(
            f"BLEUPRINT_PROCESSES is {count}, and each process needs a GPU of its own: "
            f"PyTorch finds {gpus}; {ON_CPUS}"
        )
    nodes = slurm.node_count()
    if count == 1 and nodes == 1:
        return
    # By default, each process would use all cores.
    threads = max(1, processor.THIS.cores // count)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    if gpus:
        # The C++ log of NCCL's watchdog: nccl.watch says the same in one line.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
    sys.stdout.flush()
    if nodes > 1:
        launch_slurm_step(nodes, count)
    launch_local_processes(count)


def _terminate_by_other_signals() -> None:
    """Let Ctrl-C and the end of the terminal stop a training as SIGTERM does: it saves its state.

    In a task of `launch_slurm_step`, SIGUSR1 does the same.
    """
    signals = [signal.SIGINT, signal.SIGHUP]
    if _SRUN_VARIABLE in os.environ:
        signals.append(signal.SIGUSR1)
    for number in signals:
        is_ignored = signal.getsignal(number) == signal.SIG_IGN  # as by nohup
        if not is_ignored:
            signal.signal(number, _raise_sigterm)


def _raise_sigterm(number: int, _: object) -> None:
    """Handle a signal by raising SIGTERM.

    SIGHUP says that the terminal is gone. Output to it would fail while the training saves its
    state, so the null device takes its place.
    """
    if number == signal.SIGHUP:
        for descriptor in (1, 2):  # standard output and standard error
            # A terminal is a character device; isatty() no longer recognizes one that is gone.
            if S_ISCHR(os.fstat(descriptor).st_mode):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
    signal.raise_signal(signal.SIGTERM)


def launch_local_processes(count: int) -> NoReturn:
    """Run this command as `count` processes under torch's elastic launcher, and exit.

    The exit status and the message are those of the process that failed first. SIGINT and SIGTERM
    are passed on to the processes, which have BLEUPRINT_TIMEOUT seconds to save their state.
    """
    # The processes meet at this store; no other program can take its port before they start.
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        _LOOPBACK, 0, is_master=True, wait_for_workers=False, multi_tenant=True
    )
    os.environ[LAUNCHER_VARIABLE] = str(os.getpid())
    logging.disable()  # torch's launcher logs a report of its own about a failure
    with tempfile.TemporaryDirectory(prefix="bleuprint-") as logs:
        config = LaunchConfig(
            min_nodes=1,
            max_nodes=1,
            nproc_per_node=count,
            run_id="bleuprint",
            rdzv_backend="static",
            rdzv_endpoint=f"{_LOOPBACK}:{store.port}",
            rdzv_configs={"rank": 0},
            local_addr=_LOOPBACK,
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(log_dir=logs),
            shutdown_timeout=environment.timeout_seconds(),
        )
        try:
            elastic_launch(config, sys.executable)(*sys.orig_argv[1:])
        except ChildFailedError as error:
            _exit_as_first(_ends_after_failure(error.failures, count))
        except SignalException as error:
            _exit_as_first(_ends_after_signal(error.sigval, Path(logs)))
    sys.exit(0)


def _ends_after_failure(failures: dict[int, ProcessFailure], count: int) -> list[ProcessEnd]:
    """Return how the processes of a launch in which at least one failed have ended.

    Args:
        failures: What torch's launcher noted of each process that failed, by rank.
        count: The number of processes.
    """
    ends = []
    for rank, failure in failures.items():
        if "status" in failure.error_file_data:
            # errors.run_main has left its message to this launcher.
            ends.append(_read_end(failure.error_file_data))
            continue
        is_ended_by_launcher = failure.exitcode == -signal.SIGTERM and len(failures) > 1
        if is_ended_by_launcher:
            continue
        end = ProcessEnd(
            status=max(1, failure.exitcode),
            timestamp=failure.timestamp,
            message=f"process {rank} of {count} {_describe_exit_code(failure.exitcode)}",
        )
        ends.append(end)
    return ends


def _describe_exit_code(exit_code: int) -> str:
    """Return how a process ended, such as "ended with status 3"; a signal is a negative code."""
    if exit_code >= 0:
        return f"ended with status {exit_code}"
    number = -exit_code
    description = f"was ended by signal {number} ({signal.strsignal(number)})"
    if number == signal.SIGKILL:
        description += explain_kill()
    return description


def _ends_after_signal(number: int, logs: Path) -> list[ProcessEnd]:
    """Return how the processes have ended after a signal that torch's launcher passed on.

    Args:
        number: The number of the signal.
        logs: The folder in which each process may have left a record of its end.
    """
    ends = []
    for path in logs.rglob("error.json"):
        # A full disk may have cut a record short.
        with suppress(OSError, UserError):
            record = read_json_object(path, ("status", "timestamp", "message"))
            end = _read_end(record)
            # A process that saves its state longer than another one loses the other; the signal is
            # the reason, and not this loss.
            if end.status != PEER_LOST:
                ends.append(end)
    if ends:
        return ends
    message = "interrupted" if number == signal.SIGINT else ""
    return [ProcessEnd(status=128 + number, timestamp=0, message=message)]


def _read_end(record: dict[str, Any]) -> ProcessEnd:
    """Return the end that a process has recorded by `errors.run_main`."""
    return ProcessEnd(
        status=int(record["status"]),
        timestamp=record["timestamp"],
        message=record["message"],
    )


def _exit_as_first(ends: Sequence[ProcessEnd]) -> NoReturn:
    """Print the message of the process that failed first, and exit with its status."""
    first_end = min(ends, key=_time_of_cause)
    if "\n" in first_end.message:
        sys.stderr.write(first_end.message)  # a traceback
    elif first_end.message:
        print_message(first_end.message, message_kind(first_end.status))
    sys.exit(first_end.status)


def _time_of_cause(end: ProcessEnd) -> float:
    """Return the time of an error, later for one that another process has caused."""
    if end.status == PEER_LOST:
        return end.timestamp + _SECONDS_BEFORE_CAUSE
    return end.timestamp


def launch_slurm_step(nodes: int, count: int) -> NoReturn:
    """Run this command by `srun` as `count` processes on each node of the job, and exit.

    The exit status is that of srun. SIGINT and SIGTERM are passed on as SIGUSR1, since srun kills
    its tasks at once if it receives SIGTERM itself.
    """
    command = [
        "srun",
        "--overlap",  # this process may be in a step that holds all resources of the job
        f"--nodes={nodes}",
        f"--ntasks={nodes * count}",
        f"--ntasks-per-node={count}",
        "--kill-on-bad-exit=0",  # a task that saves must not be killed when another has saved
        "--cpu-bind=none",
        "--export=ALL",
        sys.executable,
        *sys.orig_argv[1:],
    ]
    received_signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: received_signals.append(number))
    # In a session of its own, srun does not receive the terminal's Ctrl-C itself.
    step_environment = {**os.environ, _SRUN_VARIABLE: "1"}
    step = subprocess.Popen(command, env=step_environment, start_new_session=True)
    while step.poll() is None:
        time.sleep(POLL_SECONDS)
        if received_signals:
            received_signals.clear()
            step.send_signal(signal.SIGUSR1)
    was_ended_by_signal = step.returncode < 0
    sys.exit(128 - step.returncode if was_ended_by_signal else step.returncode)
