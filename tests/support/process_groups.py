"""Commands of several processes that join a group and then do what a test gives them."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from processes import loaded

Process = subprocess.Popen[str]
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")

SCRIPT = """
import os, signal, time
from pathlib import Path
import torch
from bleuprint.runtime.errors import Interrupted, UserError, run_main
from bleuprint.runtime.distributed.group import init_process_group
from bleuprint.runtime.distributed.launch import start_processes

def main():
    start_processes()
    group = init_process_group()
    rank = group.rank
    Path(f"pid{rank}").write_text(str(os.getpid()))
    group.barrier()
    if group.is_main:
        Path("joined").touch()
    work(group, rank)
    group.close()

def note_time():
    Path("time").write_text(str(time.time()))

def work(group, rank):
    work_of_the_test

run_main(main)
"""
# What the other processes do: the next collective operation, and many more.
GO_ON = "while True: group.all_reduce(torch.ones(3))"


def start(root, work, *starter, processes=None, cold=False, **variables):
    """Start a command whose processes join a group and then do some work.

    Args:
        root: The working folder, in which the command is written.
        work: Lines of Python, which can use `group` and `rank`.
        starter: The words before the command's file, such as those of torchrun; Python if omitted.
        processes: The number of processes; what the environment says if omitted.
        cold: Whether to start a child of this process, which loads its libraries itself.
        variables: Environment variables.
    """
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ").strip()
    script = root / "command.py"
    # Another process of the test may be about to read it.
    if not script.exists():
        script.write_text(SCRIPT.replace("work_of_the_test", body))
    removed = ("SLURM", "MASTER_", "WORLD_SIZE", "BLEUPRINT_", "OMP_NUM_THREADS")
    environment = {k: text for k, text in os.environ.items() if not k.startswith(removed)}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    if processes:
        environment["BLEUPRINT_PROCESSES"] = str(processes)
    for name, value in variables.items():
        environment[name] = str(value)
    command = [*(starter or [sys.executable]), "command.py"]
    if not cold and command[0] == sys.executable:
        command = loaded(command)
    return subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process, seconds=90):
    """Wait for the end of a command; return its status and what it printed on stderr."""
    try:
        _, stderr = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stderr


def wait_until_none_is_left(root):
    """Wait until no process of any session or parent runs in the folder `root`."""
    deadline = time.monotonic() + 60
    while True:
        links = Path("/proc").glob("[0-9]*/cwd")
        remaining = [link for link in links if leads_to(root, link)]
        if not remaining:
            return
        assert time.monotonic() < deadline, remaining
        time.sleep(0.05)


def leads_to(root, link):
    """Return whether the working folder of a process, a link in /proc, is `root`."""
    try:
        return link.readlink() == root
    except OSError:  # the process has ended
        return False


def wait_for(path):
    """Wait for a file that another process writes, and return its content."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} within a minute"
        time.sleep(0.05)
    return path.read_text()


def seconds_since_it_died(root):
    """Return the seconds since a process called `note_time`."""
    return time.time() - float((root / "time").read_text())
