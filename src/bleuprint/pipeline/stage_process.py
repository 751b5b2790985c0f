"""Runs the commands of stages as processes, and stops all of them when a signal arrives."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bleuprint.pipeline.machine_share import MachineShare
from bleuprint.runtime.environment import RUNNER_LOGS, stage_path
from bleuprint.runtime.progress import SHARED_TERMINAL

# As in a shell, the exit status of a command that signal N has ended is this number plus N.
SIGNAL_STATUS_BASE = 128


def run_command(command: str, share: MachineShare, machine: MachineShare) -> int:
    """Run the command of a stage in a shell, wait until it ends, and return its exit status.

    If signal N has ended the command, the status is 128 + N, as in a shell.

    Args:
        command: The command, such as `python stages/train.py small own 1`.
        share: The cores and GPUs that the stage may use.
        machine: The whole machine.
    """
    variables = {"BLEUPRINT_WORKERS": str(share.cores)}
    if share.gpus:
        variables["BLEUPRINT_GPUS"] = str(share.gpus)
    # `update` keeps the numbers that the user has set in these variables.
    variables.update(os.environ)
    variables["PATH"] = stage_path()
    # The stage does not log to MLflow, since this process does so at the end of the run.
    variables[RUNNER_LOGS] = "1"
    may_run_beside_others = share.cores < machine.cores
    if may_run_beside_others:
        # The stage prints lines instead of a progress bar.
        variables[SHARED_TERMINAL] = "1"
    status = subprocess.call(command, shell=True, env=variables)
    # For a shell that signal N has ended, Python returns -N instead of the shell's usual 128 + N.
    return status if status >= 0 else SIGNAL_STATUS_BASE - status


@contextmanager
def raise_at_signals() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt for the time of a `with` block.

    So each of them can be handled like Ctrl-C, and the running stages are stopped properly. By
    default, SIGTERM and SIGHUP (a closed terminal) would end the process at once. A signal that is
    ignored stays ignored: with `nohup`, a process must survive the end of its terminal.
    """
    old_handlers = {}
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        old_handlers[signal_number] = signal.getsignal(signal_number)
        is_ignored = old_handlers[signal_number] == signal.SIG_IGN
        if not is_ignored:
            # Python's own handler of SIGINT, which raises KeyboardInterrupt.
            signal.signal(signal_number, signal.default_int_handler)
    try:
        yield
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)


def terminate_stages() -> None:
    """Send SIGTERM to the processes of all running stages, and wait until they have ended.

    A training saves a checkpoint before it ends.
    """
    import psutil

    # These are shells, the stages that the shells run, and the processes of the stages.
    processes = psutil.Process().children(recursive=True)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(processes)
