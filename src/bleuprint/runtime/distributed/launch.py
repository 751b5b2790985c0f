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
from contextlib import AbstractContextManager, nullcontext, suppress
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
from bleuprint.runtime.distributed.gpus import ON_CPUS, gpu_count, hold_gpus_for_torch
from bleuprint.runtime.distributed.ranks import is_launched
from bleuprint.runtime.distributed.store import POLL_SECONDS
from bleuprint.runtime.errors import (
    LAUNCHER_VARIABLE,
    PEER_LOST,
    UserError,
    message_kind,
    print_message,
)
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.launcher import end_with_launcher
from bleuprint.runtime.machine_errors import add_kill_reason

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


def hold_gpus_of_training() -> AbstractContextManager[object]:
    """Return a context in which this process holds the GPUs of a training on this machine.

    If a launcher has started this process, or if a SLURM job has several nodes, the launcher or
    SLURM has already divided the GPUs among the processes, and nothing is held.
    """
    if is_launched() or slurm.node_count() > 1:
        return nullcontext()
    return hold_gpus_for_torch(environment.process_count())


def start_processes() -> None:
    """Start the processes that train one model together, if several are needed.

    The function returns only in a process that trains. There are three cases:
    - torchrun or SLURM's srun has started several processes: this process is one of them.
    - There are several GPUs or nodes, or BLEUPRINT_PROCESSES is above 1: this process starts the
      same command several times, waits for the new processes and exits.
    - Otherwise this process trains alone.

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
            f"BLEUPRINT_PROCESSES is {count}, and each process needs its own GPU, but PyTorch "
            f"finds {gpus}. Lower BLEUPRINT_PROCESSES. {ON_CPUS}"
        )
    nodes = slurm.node_count()
    if count == 1 and nodes == 1:
        return
    _set_variables_of_processes(count, has_gpus=gpus > 0)
    sys.stdout.flush()
    if nodes > 1:
        launch_slurm_step(nodes, count)
    launch_local_processes(count)


def _set_variables_of_processes(count: int, has_gpus: bool) -> None:
    """Set environment variables for the processes that this one starts.

    A value that the user has set is kept.

    Args:
        count: The number of processes on this machine, which share its cores. Without a limit, each
            would start as many threads as there are cores.
        has_gpus: Whether they train on GPUs. Then torch's long C++ log is switched off; the module
            `nccl` reports the same errors in one line.
    """
    threads = max(1, processor.THIS.cores // count)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    if has_gpus:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")


def _terminate_by_other_signals() -> None:
    """Let other signals stop a training as SIGTERM does, so that it saves its state first.

    These are SIGINT (Ctrl-C) and SIGHUP (the terminal was closed). A process that
    `launch_slurm_step` has started also gets SIGUSR1 as a request to stop.
    """
    signals = [signal.SIGINT, signal.SIGHUP]
    if _SRUN_VARIABLE in os.environ:
        signals.append(signal.SIGUSR1)
    for number in signals:
        # The command `nohup` makes a process ignore SIGHUP, and so it should remain.
        is_ignored = signal.getsignal(number) == signal.SIG_IGN
        if not is_ignored:
            signal.signal(number, _raise_sigterm)


def _raise_sigterm(number: int, _: object) -> None:
    """Send SIGTERM to this process; Python calls this function when another signal arrives.

    SIGHUP means that the terminal was closed. While the training saves its state, output to the
    terminal would fail, so it is redirected to the null device.

    Args:
        number: The number of the signal that has arrived.
    """
    if number == signal.SIGHUP:
        standard_output = 1
        standard_error = 2
        for descriptor in (standard_output, standard_error):
            # A terminal is a character device. After it was closed, isatty() returns False.
            if S_ISCHR(os.fstat(descriptor).st_mode):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, descriptor)
    signal.raise_signal(signal.SIGTERM)


def launch_local_processes(count: int) -> NoReturn:
    """Run this command as several processes on this machine, wait for them, and exit.

    torch's elastic launcher starts them. If one fails, this process prints the message of the one
    that failed first and exits with its status. The launcher passes SIGINT and SIGTERM on to the
    processes, which have BLEUPRINT_TIMEOUT seconds to save their state.

    Args:
        count: The number of processes.
    """
    # The processes find one another through this key-value store. Port 0 chooses a free port. The
    # store is opened before they start, so that no other program can take the port meanwhile.
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        _LOOPBACK, 0, is_master=True, wait_for_workers=False, multi_tenant=True
    )
    os.environ[LAUNCHER_VARIABLE] = str(os.getpid())
    # torch's launcher would log a long report of its own about a failure.
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="bleuprint-") as logs:
        config = _launch_config(count, store.port, logs)
        run_processes = elastic_launch(config, sys.executable)
        try:
            run_processes(*sys.orig_argv[1:])
        except ChildFailedError as error:
            _exit_as_first(_ends_after_failure(error.failures, count))
        except SignalException as error:
            _exit_as_first(_ends_after_signal(error.sigval, Path(logs)))
    sys.exit(0)


def _launch_config(count: int, port: int, logs: str) -> LaunchConfig:
    """Return the settings of torch's elastic launcher for processes on this machine.

    The launcher could also restart failed processes and use several machines. Both are switched
    off.

    Args:
        count: The number of processes.
        port: The port of the key-value store at which the processes find one another.
        logs: The folder in which each process may write how it ended.
    """
    return LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id="bleuprint",
        rdzv_backend="static",
        rdzv_endpoint=f"{_LOOPBACK}:{port}",
        rdzv_configs={"rank": 0},
        local_addr=_LOOPBACK,
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=logs),
        shutdown_timeout=environment.timeout_seconds(),
    )


def _ends_after_failure(failures: dict[int, ProcessFailure], count: int) -> list[ProcessEnd]:
    """Return how the failed processes have ended, without those that the launcher has ended.

    Args:
        failures: What torch's launcher has recorded about each failed process, by its rank.
        count: The number of processes.
    """
    ends = []
    for rank, failure in failures.items():
        if "status" in failure.error_file_data:
            # The process has written its message and status to a file (`errors.run_main`).
            ends.append(_read_end(failure.error_file_data))
            continue
        # When one process fails, torch's launcher ends the others by SIGTERM. Their end explains
        # nothing.
        is_ended_by_launcher = failure.exitcode == -signal.SIGTERM and len(failures) > 1
        if is_ended_by_launcher:
            continue
        end = ProcessEnd(
            # If a signal ended the process, the exit code is negative; the exit status is then 1.
            status=max(1, failure.exitcode),
            timestamp=failure.timestamp,
            message=f"process {rank} of {count} {_describe_exit_code(failure.exitcode)}",
        )
        ends.append(end)
    return ends


def _describe_exit_code(exit_code: int) -> str:
    """Describe how a process ended, such as "ended with status 3".

    Args:
        exit_code: The exit status, from 0. If a signal ended the process, the negated number of the
            signal, such as -15.
    """
    if exit_code >= 0:
        return f"ended with status {exit_code}"
    number = -exit_code
    description = f"was ended by signal {number} ({signal.strsignal(number)})"
    if number == signal.SIGKILL:
        return add_kill_reason(description)
    return description


def _ends_after_signal(number: int, logs: Path) -> list[ProcessEnd]:
    """Return how the processes have ended, after torch's launcher passed a signal on to them.

    Args:
        number: The number of the signal.
        logs: The folder in which each process may have written how it ended.

    Returns:
        The recorded ends; if there are none, one end that the signal itself explains.
    """
    ends = []
    for path in logs.rglob("error.json"):
        # Skip a record that is incomplete, for example because the disk was full.
        with suppress(OSError, UserError):
            record = read_json_object(path, ("status", "timestamp", "message"))
            end = _read_end(record)
            # A process that takes long to save its state may report that it has lost another
            # process (PEER_LOST), which the same signal has ended. This is not the cause.
            if end.status != PEER_LOST:
                ends.append(end)
    if ends:
        return ends
    message = "interrupted" if number == signal.SIGINT else ""
    return [ProcessEnd(status=128 + number, timestamp=0, message=message)]


def _read_end(record: dict[str, Any]) -> ProcessEnd:
    """Return how a process has ended, from the record that it has written itself.

    Args:
        record: The content of the JSON file that `errors.run_main` writes.
    """
    return ProcessEnd(
        status=int(record["status"]),
        timestamp=record["timestamp"],
        message=record["message"],
    )


def _exit_as_first(ends: Sequence[ProcessEnd]) -> NoReturn:
    """End the launcher like the process that failed first: with its message and exit status.

    Args:
        ends: How the processes have ended. A message of several lines is a traceback, which is
            printed unchanged.
    """
    first_end = min(ends, key=_time_of_cause)
    if "\n" in first_end.message:
        sys.stderr.write(first_end.message)
    elif first_end.message:
        print_message(first_end.message, message_kind(first_end.status))
    sys.exit(first_end.status)


def _time_of_cause(end: ProcessEnd) -> float:
    """Return a sort key by which the process whose error caused the others comes first.

    When one process fails, the others lose their connection to it and fail, too (PEER_LOST). They
    may record this slightly before the first process has recorded its own error. So a few seconds
    are added to their time.
    """
    if end.status == PEER_LOST:
        return end.timestamp + _SECONDS_BEFORE_CAUSE
    return end.timestamp


def launch_slurm_step(nodes: int, count: int) -> NoReturn:
    """Run this command on all nodes of a SLURM job by `srun`, wait for it, and exit.

    The exit status is the one of srun. When this process receives SIGINT or SIGTERM, it sends
    SIGUSR1 to srun, which passes it on to the processes, so that they save their state. SIGTERM
    cannot be passed on in this way: srun would kill the processes at once.

    Args:
        nodes: The number of nodes (machines) of the job.
        count: The number of processes on each node.
    """
    received_signals: list[int] = []

    def remember_signal(number: int, _: object) -> None:
        """Record a signal that has arrived. The loop that waits for srun then reacts to it."""
        received_signals.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, remember_signal)
    # A terminal sends Ctrl-C to all processes of its session. srun starts a session of its own, so
    # that it does not receive Ctrl-C itself.
    step_environment = {**os.environ, _SRUN_VARIABLE: "1"}
    step = subprocess.Popen(
        _srun_command(nodes, count), env=step_environment, start_new_session=True
    )
    while step.poll() is None:
        time.sleep(POLL_SECONDS)
        if received_signals:
            received_signals.clear()
            step.send_signal(signal.SIGUSR1)
    if step.returncode < 0:
        # A signal ended srun. As in a shell, the exit status is 128 plus the signal's number.
        sys.exit(128 - step.returncode)
    sys.exit(step.returncode)


def _srun_command(nodes: int, count: int) -> list[str]:
    """Return the command by which SLURM runs this program on the nodes of a job.

    Args:
        nodes: The number of nodes (machines) of the job.
        count: The number of processes on each node.
    """
    return [
        "srun",
        # This process may itself run in a step of the job that holds all its resources.
        "--overlap",
        f"--nodes={nodes}",
        f"--ntasks={nodes * count}",
        f"--ntasks-per-node={count}",
        # When one process has ended, the others must not be killed: they may be saving their state.
        "--kill-on-bad-exit=0",
        # Each process may use all cores of its node.
        "--cpu-bind=none",
        "--export=ALL",
        sys.executable,
        *sys.orig_argv[1:],
    ]
