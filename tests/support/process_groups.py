"""Commands of several processes that join a group and then run the code that a test gives them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

from processes import in_loaded_python

TORCHRUN = (sys.executable, "-m", "torch.distributed.run")

# The program that each process runs; `start_group` replaces JOIN and PROCESS_CODE.
SCRIPT = """
import os, signal, time
from pathlib import Path
import torch
from bleuprint.runtime.errors import Interrupted, UserError, run_main
from bleuprint.runtime.distributed.group import init_process_group
from bleuprint.runtime.distributed.launch import start_processes

def main():
    start_processes()
    JOIN
    rank = group.rank
    Path(f"pid{rank}").write_text(str(os.getpid()))
    group.barrier()
    if group.is_main:
        Path("joined").touch()
    run_process_code(group, rank)
    group.close()

def note_time():
    Path("time").write_text(str(time.time()))

def all_reduce_forever(group):
    while True:
        group.all_reduce(torch.ones(3))

def run_process_code(group, rank):
    PROCESS_CODE

run_main(main)
"""


class ProcessExit(NamedTuple):
    """How a command has ended: its exit status, which is -N after signal N, and its output."""

    status: int
    stdout: str
    stderr: str


def start_group(
    folder,
    code_of_each_process,
    *starter,
    processes=None,
    join="group = init_process_group()",
    preloaded=True,
    **variables,
):
    """Start a command whose processes join a group, write a file `joined`, and run some code.

    Args:
        folder: The working folder, in which the command is written.
        code_of_each_process: Lines of Python, which can use `group`, the Group that the process has
            joined, and `rank`, the rank of the process, from 0. `all_reduce_forever(group)` sums
            over the processes again and again, so that a process notices the end of another one.
            `note_time()` writes the time for `seconds_since_noted_time`.
        starter: The words before the command's file, such as those of torchrun; Python if omitted.
        processes: The number of processes; what the environment says if omitted.
        join: The line of Python by which a process joins the group; a test may replace it.
        preloaded: Whether to run in processes that have loaded torch. Otherwise the command is a
            child of this process, which loads its libraries itself.
        variables: Environment variables.

    Returns:
        The running command, a `subprocess.Popen`: the launcher of the processes, or one process if
        the environment says that it is launched already.
    """
    body = textwrap.indent(textwrap.dedent(code_of_each_process).strip(), "    ").strip()
    script = folder / "command.py"
    # Another process of the test may be about to read it.
    if not script.exists():
        script.write_text(SCRIPT.replace("JOIN", join).replace("PROCESS_CODE", body))
    removed = ("SLURM", "MASTER_", "WORLD_SIZE", "BLEUPRINT_", "OMP_NUM_THREADS")
    environment = {k: text for k, text in os.environ.items() if not k.startswith(removed)}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    if processes:
        environment["BLEUPRINT_PROCESSES"] = str(processes)
    for name, value in variables.items():
        environment[name] = str(value)
    command = [*(starter or [sys.executable]), "command.py"]
    if preloaded and command[0] == sys.executable:
        command = in_loaded_python(command)
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_exit(process, seconds=90):
    """Wait until a command of `start_group` ends, and return its ProcessExit.

    Args:
        process: The command.
        seconds: After this time all its processes are killed, and the test fails.
    """
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return ProcessExit(process.returncode, stdout, stderr)


def wait_until_no_process_is_left(folder):
    """Wait until no process of any session or parent has `folder` as its working folder."""
    deadline = time.monotonic() + 60
    while True:
        links = Path("/proc").glob("[0-9]*/cwd")
        remaining = [link for link in links if leads_to(folder, link)]
        if not remaining:
            return
        assert time.monotonic() < deadline, remaining
        time.sleep(0.05)


def leads_to(folder, link):
    """Return whether the working folder of a process, a link in /proc, is `folder`."""
    try:
        return link.readlink() == folder
    except OSError:  # the process has ended
        return False


def wait_for_file(path):
    """Wait for a file that another process writes, and return its content."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} within a minute"
        time.sleep(0.05)
    return path.read_text()


def seconds_since_noted_time(folder):
    """Return the seconds since a process of `start_group` in `folder` called `note_time()`."""
    return time.time() - float((folder / "time").read_text())
