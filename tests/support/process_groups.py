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
from bleuprint.runtime.errors import Interrupted, UserError, run
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

run(main)
"""
# What the other processes do: the next collective operation, and many more.
GO_ON = "while True: group.all_reduce(torch.ones(3))"


def start(root, work, *starter, processes=None, cold=False, **variables):
    """Start a command that joins a group and then does `work` with `group` and `rank`.

    `cold`: in a process that is this one's child, which loads its libraries.
    """
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ").strip()
    script = root / "command.py"
    if not script.exists():  # the process before may be about to read it
        script.write_text(SCRIPT.replace("work_of_the_test", body))
    ours = ("SLURM", "MASTER_", "WORLD_SIZE", "BLEUPRINT_", "OMP_NUM_THREADS")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    if processes:
        variables["BLEUPRINT_PROCESSES"] = processes
    given = {name: str(value) for name, value in variables.items()}
    command = [*(starter or [sys.executable]), "command.py"]
    return subprocess.Popen(
        command if cold or command[0] != sys.executable else loaded(command),
        cwd=root,
        env={**kept, "CUDA_VISIBLE_DEVICES": "", **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process, seconds=90):
    """Wait for the end of a command; its status and what it printed on stderr."""
    try:
        _, stderr = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stderr


def wait_until_none_is_left(root):
    """Wait until no process of any session or parent runs in the folder `root`."""
    deadline = time.monotonic() + 60
    while left := [link for link in Path("/proc").glob("[0-9]*/cwd") if leads_to(root, link)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def leads_to(root, link):
    try:
        return link.readlink() == root
    except OSError:  # the process has ended
        return False


def wait_for(path):
    """The content of a file that another process writes."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} within a minute"
        time.sleep(0.05)
    return path.read_text()


def seconds_since_it_died(root):
    return time.time() - float((root / "time").read_text())
