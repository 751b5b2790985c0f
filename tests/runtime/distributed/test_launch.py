"""Processes that train together: how they start and end, with one line and status for all."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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


def start(
    root: Path, work: str, *starter: str, processes: int | None = None, **variables: object
) -> Process:
    """Start a command that joins a group and then does `work` with `group` and `rank`."""
    body = textwrap.indent(textwrap.dedent(work).strip(), "    ").strip()
    script = root / "command.py"
    if not script.exists():  # the process before may be about to read it
        script.write_text(SCRIPT.replace("work_of_the_test", body))
    ours = ("SLURM", "MASTER_", "WORLD_SIZE", "BLEUPRINT_", "OMP_NUM_THREADS")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    if processes:
        variables["BLEUPRINT_PROCESSES"] = processes
    given = {name: str(value) for name, value in variables.items()}
    return subprocess.Popen(
        [*starter, sys.executable, "command.py"] if not starter else [*starter, "command.py"],
        cwd=root,
        env={**kept, "CUDA_VISIBLE_DEVICES": "", **given},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process: Process, seconds: float = 90) -> tuple[int, str]:
    """Wait for the end of a command; its status and what it printed on stderr."""
    try:
        _, stderr = process.communicate(timeout=seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, stderr


def wait_until_none_is_left(root: Path) -> None:
    """Wait until no process of any session or parent runs in the folder `root`."""
    deadline = time.monotonic() + 10
    while left := [link for link in Path("/proc").glob("[0-9]*/cwd") if leads_to(root, link)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def leads_to(root: Path, link: Path) -> bool:
    try:
        return link.readlink() == root
    except OSError:  # the process has ended
        return False


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    wait_until_none_is_left(tmp_path)


def wait_for(path: Path) -> str:
    """The content of a file that another process writes."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} within a minute"
        time.sleep(0.05)
    return path.read_text()


def seconds_since_it_died(root: Path) -> float:
    return time.time() - float((root / "time").read_text())


def test_they_add_up_agree_and_leave_one_after_the_other(tmp_path: Path) -> None:
    work = """
    assert group.size == 3 and group.all_reduce(torch.tensor([1.0, rank])).tolist() == [3, 3]
    assert group.any(rank == 2) and group.any(rank == 0) and not group.any(False)
    os.write(1, f"threads {os.environ['OMP_NUM_THREADS']}\\n".encode())  # in one piece
    group.barrier()
    if group.is_main:
        while any(Path("/proc", Path(f"pid{other}").read_text()).exists() for other in (1, 2)):
            time.sleep(0.05)
        time.sleep(0.5)  # as the one that exports does, when the others have left
        print("exported")
    """
    process = start(tmp_path, work, processes=3)
    printed, said = process.communicate(timeout=90)
    threads = max(1, len(os.sched_getaffinity(0)) // 3)
    assert (process.returncode, said) == (0, "")
    assert printed.split("\n") == [*[f"threads {threads}"] * 3, "exported", ""]


def test_an_error_of_one_process_is_printed_once_and_ends_all(tmp_path: Path) -> None:
    work = f"""
    if rank == 1:
        note_time()
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    assert end(start(tmp_path, work, processes=3)) == (1, "bleuprint: error: shelf 7 is empty\n")
    assert seconds_since_it_died(tmp_path) < 30


def test_an_error_of_all_is_printed_once(tmp_path: Path) -> None:
    line = "bleuprint: error: shelf 7 is empty\n"
    work = 'raise UserError("shelf 7 is empty")'
    assert end(start(tmp_path, work, processes=3)) == (1, line)


def test_an_error_before_they_meet_is_printed_once(tmp_path: Path) -> None:
    script = SCRIPT.replace("group = init_process_group()", 'raise UserError("no shelf")')
    (tmp_path / "command.py").write_text(script)
    assert end(start(tmp_path, "", processes=2)) == (1, "bleuprint: error: no shelf\n")


def test_a_bug_shows_one_traceback(tmp_path: Path) -> None:
    work = f"""
    if rank == 1:
        raise ValueError("seven shelves")
    {GO_ON}
    """
    status, said = end(start(tmp_path, work, processes=2))
    assert status == 1
    assert said.count("Traceback") == 1
    assert said.endswith("ValueError: seven shelves\n")


@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_one_is_named(tmp_path: Path, rank: int) -> None:
    work = f"""
    if rank == {rank}:
        note_time()
        os.kill(os.getpid(), signal.SIGKILL)
    {GO_ON}
    """
    assert end(start(tmp_path, work, processes=3)) == (
        1,
        f"bleuprint: error: process {rank} of 3 was ended by signal 9 (Killed); is memory short?\n",
    )
    assert seconds_since_it_died(tmp_path) < 30


def test_a_killed_one_ends_those_too_that_are_long_busy(tmp_path: Path) -> None:
    work = """
    if rank == 1:
        note_time()
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)
    """
    status, said = end(start(tmp_path, work, processes=2))
    line = "bleuprint: error: process 1 of 2 was ended by signal 11 (Segmentation fault)\n"
    assert (status, said) == (1, line)
    assert seconds_since_it_died(tmp_path) < 30


def test_the_status_is_that_of_the_first_to_fail(tmp_path: Path) -> None:
    work = f"""
    if rank == 1:
        os._exit(3)
    {GO_ON}
    """
    line = "bleuprint: error: process 1 of 2 ended with status 3\n"
    assert end(start(tmp_path, work, processes=2)) == (3, line)


def test_sigterm_saves_on_all(tmp_path: Path) -> None:
    work = """
    received = []
    signal.signal(signal.SIGTERM, lambda *_: received.append(True))
    Path(f"ready{rank}").touch()
    while not group.any(bool(received)):
        time.sleep(0.05)
    Path(f"saved{rank}").touch()
    group.barrier()
    raise Interrupted("saved at update 7")
    """
    process = start(tmp_path, work, processes=2)
    for rank in range(2):
        wait_for(tmp_path / f"ready{rank}")
    process.terminate()
    assert end(process) == (75, "bleuprint: error: saved at update 7\n")
    assert (tmp_path / "saved0").exists()
    assert (tmp_path / "saved1").exists()


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "bleuprint: error: interrupted\n"), (signal.SIGTERM, 143, "")],
)
def test_a_signal_reaches_all(
    tmp_path: Path, number: signal.Signals, status: int, said: str
) -> None:
    process = start(tmp_path, GO_ON, processes=2)
    wait_for(tmp_path / "joined")
    process.send_signal(number)
    assert end(process) == (status, said)


def test_they_end_with_their_launcher(tmp_path: Path) -> None:
    process = start(tmp_path, "time.sleep(60)", processes=2)
    wait_for(tmp_path / "joined")
    process.kill()
    process.communicate(timeout=10)  # they hold its pipes open
    wait_until_none_is_left(tmp_path)


def test_a_process_that_pauses_within_the_timeout_is_waited_for(tmp_path: Path) -> None:
    work = """
    if rank == 1:
        Path("stopped").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    group.barrier()
    """
    process = start(tmp_path, work, processes=2)
    wait_for(tmp_path / "stopped")
    time.sleep(2)
    os.kill(int((tmp_path / "pid1").read_text()), signal.SIGCONT)
    assert end(process) == (0, "")


def test_a_process_that_hangs_ends_all_by_the_timeout(tmp_path: Path) -> None:
    work = """
    if rank == 1:
        time.sleep(60)
    note_time()
    group.barrier()
    """
    status, stderr = end(start(tmp_path, work, processes=2, BLEUPRINT_TIMEOUT=4))
    lost = r"bleuprint: error: process 0 of 2 on \S+ lost another process: Timed out waiting 4000ms"
    assert status == 69
    assert re.match(lost, stderr)
    assert stderr.count("\n") == 1
    assert 4 <= seconds_since_it_died(tmp_path) < 20


@pytest.mark.parametrize("absent", [{0}, {1, 3}])
def test_processes_that_never_come_are_named(tmp_path: Path, absent: set[int]) -> None:
    tasks = [
        start(tmp_path, GO_ON, BLEUPRINT_TIMEOUT=5, **step(rank, 4, 8 + len(absent)))
        for rank in range(4)
        if rank not in absent
    ]
    ends = [end(task) for task in tasks]
    for rank, (status, stderr) in zip(sorted({0, 1, 2, 3} - absent), ends, strict=True):
        assert status in (1, 69)
        (line,) = [line for line in stderr.splitlines() if line.startswith("bleuprint: error: ")]
        if absent == {0}:
            assert f"process {rank} of 4: process 0 did not come to the start at localhost:" in line
            assert "within 5 s (BLEUPRINT_TIMEOUT): Connection refused" in line
        elif rank == 0:  # it holds the store: the others may find that lost at the same moment
            assert line == (
                "bleuprint: error: processes of 4 that did not come to the start within 5 s "
                "(BLEUPRINT_TIMEOUT): 1, 3"
            )


@pytest.mark.parametrize("rank", [0, 1])
def test_torchrun_restarts_all_when_one_is_killed(tmp_path: Path, rank: int) -> None:
    torchrun = (*TORCHRUN, "--nproc-per-node=2", "--max-restarts=1")
    work = f"""
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    Path(f"rank{{rank}}attempt{{attempt}}").touch()
    if attempt == "0":
        if rank == {rank}:
            os.kill(os.getpid(), signal.SIGKILL)
        {GO_ON}
    """
    status, stderr = end(start(tmp_path, work, *torchrun))
    assert status == 0, stderr
    tried = [path.name for path in sorted(tmp_path.glob("rank?attempt?"))]
    assert {f"rank{rank}attempt0", "rank0attempt1", "rank1attempt1"} <= set(tried)


def test_torchrun_starts_them_as_well(tmp_path: Path) -> None:
    work = f"""
    if rank == 1:
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    status, stderr = end(start(tmp_path, work, *TORCHRUN, "--nproc-per-node=3"))
    lines = sorted(line for line in stderr.split("\n") if line.startswith("bleuprint: "))
    assert (status, lines[-1]) == (1, "bleuprint: error: shelf 7 is empty")
    assert all("lost another process" in line for line in lines[:-1])
    assert "[rank" not in stderr  # no traceback; the report after it is that of torchrun
    assert "traceback : shelf 7 is empty" in stderr


def test_under_slurm_each_task_is_one_of_them(tmp_path: Path) -> None:
    work = """
    assert (group.size, group.rank) == (3, int(os.environ["SLURM_PROCID"]))
    assert group.all_reduce(torch.tensor([1.0, rank])).tolist() == [3, 3]
    """
    tasks = [start(tmp_path, work, **step(rank, 3, 3)) for rank in range(3)]
    assert [end(task) for task in tasks] == [(0, "")] * 3


@pytest.mark.parametrize("killed", [0, 2])
def test_under_slurm_a_killed_task_ends_the_others(tmp_path: Path, killed: int) -> None:
    work = f"""
    if rank == {killed}:
        note_time()
        os.kill(os.getpid(), signal.SIGKILL)
    {GO_ON}
    """
    tasks = [start(tmp_path, work, **step(rank, 3, killed)) for rank in range(3)]
    ends = [end(task) for task in tasks]
    assert seconds_since_it_died(tmp_path) < 30
    assert [status for status, _ in ends] == [-9 if rank == killed else 69 for rank in range(3)]
    for rank, (_, stderr) in enumerate(ends):
        lost = rf"bleuprint: error: process {rank} of 3 on \S+ lost another process: .*\n"
        assert re.fullmatch("" if rank == killed else lost, stderr)


def test_a_link_that_is_cut_ends_both_sides_by_the_timeout(
    tmp_path: Path, two_hosts: list[str]
) -> None:
    tasks = []
    for rank, host in enumerate(two_hosts):
        variables = {**step(rank, 2, 4), "MASTER_ADDR": "10.77.0.1", "BLEUPRINT_TIMEOUT": 4}
        netns = ("ip", "netns", "exec", host, sys.executable)
        tasks.append(start(tmp_path, GO_ON, *netns, **variables))
    wait_for(tmp_path / "joined")
    subprocess.run(["ip", "-n", two_hosts[0], "link", "set", "wire", "down"], check=True)
    cut = time.monotonic()
    ends = [end(task) for task in tasks]
    assert time.monotonic() - cut < 4 + 7
    for rank, (status, stderr) in enumerate(ends):
        assert status == 69
        lost = rf"bleuprint: error: process {rank} of 2 on \S+ lost another process: Timed out.*"
        (line,) = (line for line in stderr.split("\n") if line.startswith("bleuprint: "))
        assert re.fullmatch(lost, line)


def test_on_a_terminal_the_line_replaces_a_bar() -> None:
    ours, theirs = os.openpty()
    command = (
        "import sys; sys.stderr.write('45 %'); from bleuprint.runtime.errors import say; say('no')"
    )
    subprocess.run(
        [sys.executable, "-c", command],
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        check=True,
    )
    os.close(theirs)
    assert os.read(ours, 100) == b"45 %\r\x1b[Kbleuprint: error: no\r\n"
    os.close(ours)


def step(rank: int, size: int, number: int) -> dict[str, object]:
    """The environment in which srun starts a task of the job's step `number`."""
    return {
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank,
        "SLURM_NTASKS": size,
        "SLURM_STEP_NUM_TASKS": size,
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_JOB_ID": os.getpid(),
        "SLURM_STEP_ID": number,
    }
