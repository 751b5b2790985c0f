"""Starts the processes that train one model: those of this machine, or of a SLURM job."""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
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
from bleuprint.runtime.distributed.group import is_launched
from bleuprint.runtime.distributed.rendezvous import POLL_SECONDS
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
_SRUN = "BLEUPRINT_SRUN"  # set in the tasks of `launch_slurm_step`
# A loss of contact is ranked this many seconds later: the failure that caused it comes first.
_CAUSE = 5.0


def start_processes() -> None:
    """Run this command as several processes if needed; returns in each process that trains.

    It is one of them already if torchrun or srun has started several. Else it becomes their parent
    in a SLURM job of several nodes (`launch_slurm_step`), with several GPUs or with
    BLEUPRINT_PROCESSES above 1 (`launch_local_processes`), and the only one elsewhere.

    Raises UserError if there are fewer GPUs than processes on this machine.
    """
    end_with_launcher()
    # a training that SIGTERM ends saves, at Ctrl-C and at the end of a terminal, too
    for number in (signal.SIGINT, signal.SIGHUP, *[signal.SIGUSR1] * (_SRUN in os.environ)):
        if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
            signal.signal(number, _terminate)
    if is_launched():
        return
    gpus = gpu_count()
    count = environment.process_count() or max(1, gpus)
    if gpus and count > gpus:
        raise UserError(
            f"BLEUPRINT_PROCESSES is {count}, and each process needs a GPU of its own: "
            f"PyTorch finds {gpus}; {ON_CPUS}"
        )
    if count > 1 or slurm.node_count() > 1:  # by default each process would use all cores
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, processor.THIS.cores // count)))
        if gpus:  # nccl.watch says what NCCL's watchdog logs
            os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")
        sys.stdout.flush()
    if slurm.node_count() > 1:
        launch_slurm_step(slurm.node_count(), count)
    if count > 1:
        launch_local_processes(count)


def _terminate(number: int, _: object) -> None:
    """Raise SIGTERM instead of a signal. After SIGHUP, writing to the terminal would fail."""
    for stream in (1, 2) if number == signal.SIGHUP else ():
        if S_ISCHR(os.fstat(stream).st_mode):  # isatty() says no by now
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    signal.raise_signal(signal.SIGTERM)


def launch_local_processes(count: int) -> NoReturn:
    """Run this command as `count` processes under torch's elastic launcher, and exit.

    The status and the message are those of the first process that failed. SIGINT and SIGTERM are
    passed on; the processes have BLEUPRINT_TIMEOUT seconds to save.
    """
    # The rendezvous store of the processes; no other process can take its port before they start.
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        _LOOPBACK, 0, is_master=True, wait_for_workers=False, multi_tenant=True
    )
    os.environ[LAUNCHER_VARIABLE] = str(os.getpid())
    logging.disable()  # the launcher's own report of a failure
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
            sys.exit(_print_first(_ends(error.failures, count)))
        except SignalException as error:
            # a full disk cuts them short
            ends = []
            for path in Path(logs).rglob("error.json"):
                with suppress(OSError, UserError):
                    ends.append(read_json_object(path, ("status", "timestamp", "message")))
            # one that the signal ended later than another has lost that one because of the signal
            records = [end for end in ends if end["status"] != PEER_LOST]
            message = "interrupted" if error.sigval == signal.SIGINT else ""
            unrecorded = {"status": 128 + error.sigval, "timestamp": 0, "message": message}
            sys.exit(_print_first(records or [unrecorded]))
    sys.exit(0)


def launch_slurm_step(nodes: int, count: int) -> NoReturn:
    """Run this command by `srun` as `count` processes on each node of the job, and exit.

    The status is that of srun. SIGINT and SIGTERM are passed on as SIGUSR1, since srun kills its
    tasks if it receives SIGTERM itself.
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
        *(sys.executable, *sys.orig_argv[1:]),
    ]
    received: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: received.append(number))
    step = subprocess.Popen(command, env={**os.environ, _SRUN: "1"}, start_new_session=True)
    while step.poll() is None:
        time.sleep(POLL_SECONDS)
        if received:
            received.clear()
            step.send_signal(signal.SIGUSR1)
    sys.exit(step.returncode if step.returncode >= 0 else 128 - step.returncode)


def _ends(failures: dict[int, ProcessFailure], count: int) -> Iterator[dict[str, Any]]:
    """How each process that failed has ended: what it recorded (errors.run_main), or its status."""
    for rank, failure in failures.items():
        code, how = failure.exitcode, f"ended with status {failure.exitcode}"
        if "status" in failure.error_file_data:
            yield failure.error_file_data
        elif code != -signal.SIGTERM or len(failures) == 1:  # else by the launcher
            if code < 0:
                how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
            if code == -signal.SIGKILL:
                how += explain_kill()
            message = f"process {rank} of {count} {how}"
            yield {"status": max(1, code), "timestamp": failure.timestamp, "message": message}


def _print_first(ends: Iterable[dict[str, Any]]) -> int:
    """Print the message of the process that failed first and return its status."""
    first = min(ends, key=lambda end: end["timestamp"] + _CAUSE * (end["status"] == PEER_LOST))
    message = first["message"]
    if "\n" in message:  # a traceback
        sys.stderr.write(message)
    elif message:
        print_message(message, message_kind(int(first["status"])))
    return int(first["status"])
