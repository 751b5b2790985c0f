"""Processes that train together: however they are started and ended, one line says why."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

Process = subprocess.Popen[str]

SCRIPT = """
import os, signal, time
from pathlib import Path
import torch
from bleuprint.runtime.distributed import lifeline
from bleuprint.runtime.errors import Interrupted, UserError, run
from bleuprint.runtime.distributed.group import join, relaunch_if_several

def main():
    relaunch_if_several()
    group = join()
    rank = group.rank
    Path(f"pid{rank}").write_text(str(os.getpid()))
    group.wait()
    if group.first:
        Path("joined").touch()
    work(group, rank)
    group.close()

def last_words():
    Path("time").write_text(str(time.time()))

def work(group, rank):
    work_of_the_test

run(main)
"""
# What those do that nothing happened to: the next collective operation, and many more.
GO_ON = "while True: group.sum(torch.ones(3))"


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


def end(process: Process) -> tuple[int, str]:
    """Wait for the end of a command; its status and what it said on stderr."""
    try:
        _, said = process.communicate(timeout=90)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said


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
    lifeline._GRACE = 0.1
    assert group.size == 3 and group.sum(torch.tensor([1.0, rank])).tolist() == [3, 3]
    assert group.any(rank == 2) and group.any(rank == 0) and not group.any(False)
    os.write(1, f"threads {os.environ['OMP_NUM_THREADS']}\\n".encode())  # in one piece
    group.wait()
    if group.first:
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


def test_a_mistake_found_by_one_is_told_once_and_ends_all(tmp_path: Path) -> None:
    work = f"""
    if rank == 1:
        last_words()
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    assert end(start(tmp_path, work, processes=3)) == (1, "bleuprint: error: shelf 7 is empty\n")
    assert seconds_since_it_died(tmp_path) < 30


def test_a_mistake_found_by_all_is_told_once_by_the_first(tmp_path: Path) -> None:
    work = """
    if group.first:
        time.sleep(0.5)
        raise UserError("shelf 7 is empty")
    raise UserError("some shelf is empty")
    """
    line = "bleuprint: error: shelf 7 is empty\n"
    assert end(start(tmp_path, work, processes=2)) == (1, line)


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
        last_words()
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
        last_words()
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


def test_told_to_stop_all_of_them_save(tmp_path: Path) -> None:
    work = """
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    Path(f"ready{rank}").touch()
    while not group.any(bool(told)):
        time.sleep(0.05)
    Path(f"saved{rank}").touch()
    group.wait()
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


def test_they_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    process = start(tmp_path, "time.sleep(60)", processes=2)
    wait_for(tmp_path / "joined")
    process.kill()
    process.communicate(timeout=10)  # they hold its pipes open
    deadline = time.monotonic() + 10  # they close what they have open before they are gone
    for rank in range(2):
        while running(int((tmp_path / f"pid{rank}").read_text())):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_one_that_stands_still_is_not_taken_for_dead(tmp_path: Path) -> None:
    work = """
    group.wait()
    if rank == 1:
        Path("stopped").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
    group.wait()
    """
    process = start(tmp_path, faster(work), processes=2)
    wait_for(tmp_path / "stopped")
    time.sleep(5)  # a link that was cut would have ended them
    os.kill(int((tmp_path / "pid1").read_text()), signal.SIGCONT)
    assert end(process) == (0, "")


def test_torchrun_starts_them_as_well(tmp_path: Path) -> None:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=3")
    work = f"""
    if rank == 1:
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    status, said = end(start(tmp_path, work, *torchrun))
    lines = [line for line in said.split("\n") if line.startswith("bleuprint: ")]
    assert (status, lines) == (1, ["bleuprint: error: shelf 7 is empty"])
    assert "[rank" not in said  # a traceback of ours; what torchrun says is its own
    assert "Root Cause" in said
    assert "rank      : 1 (local_rank: 1)" in said.partition("Root Cause")[2]


def test_under_slurm_each_task_is_one_of_them(tmp_path: Path) -> None:
    work = """
    assert (group.size, group.rank) == (3, int(os.environ["SLURM_PROCID"]))
    assert group.sum(torch.tensor([1.0, rank])).tolist() == [3, 3]
    """
    tasks = [start(tmp_path, work, **step(rank, 3, 3)) for rank in range(3)]
    assert [end(task) for task in tasks] == [(0, "")] * 3


@pytest.mark.parametrize("killed", [0, 2])
def test_under_slurm_one_names_the_task_that_is_gone(tmp_path: Path, killed: int) -> None:
    work = f"""
    if rank == {killed}:
        last_words()
        os.kill(os.getpid(), signal.SIGKILL)
    {GO_ON}
    """
    tasks = [start(tmp_path, work, **step(rank, 3, killed)) for rank in range(3)]
    ends = [end(task) for task in tasks]
    assert [status for status, _ in ends] == [-9 if rank == killed else 69 for rank in range(3)]
    (line,) = "".join(said for _, said in ends).splitlines()
    assert line.startswith(f"bleuprint: error: process {killed} of 3 on ")
    assert line.endswith(" is gone")
    assert seconds_since_it_died(tmp_path) < 30


def test_a_link_that_is_cut_ends_both_sides(tmp_path: Path, two_hosts: list[str]) -> None:
    tasks = []
    for rank, host in enumerate(two_hosts):
        variables = {**step(rank, 2, 4), "MASTER_ADDR": "10.77.0.1", "GLOO_SOCKET_IFNAME": "wire"}
        netns = ("ip", "netns", "exec", host, sys.executable)
        tasks.append(start(tmp_path, faster(GO_ON), *netns, **variables))
    wait_for(tmp_path / "joined")
    subprocess.run(["ip", "-n", two_hosts[0], "link", "set", "wire", "down"], check=True)
    cut = time.monotonic()
    ends = [end(task) for task in tasks]
    assert time.monotonic() - cut < 3 + 7
    for rank, (status, said) in enumerate(ends):
        (line,) = (line for line in said.split("\n") if line.startswith("bleuprint: "))
        assert status == 69
        assert f"process {1 - rank} of 2 on" in line
        assert "is gone" in line


def test_on_a_terminal_the_line_stands_in_the_place_of_a_bar() -> None:
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
    """What srun tells a task of the job's step `number`."""
    return {
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": rank,
        "SLURM_NTASKS": size,
        "SLURM_STEP_NUM_TASKS": size,
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_JOB_ID": os.getpid(),
        "SLURM_STEP_ID": number,
    }


def faster(work: str) -> str:
    """The work, where a link that was cut ends a process after 3 seconds instead of 23."""
    settings = "{'TCP_KEEPIDLE': 1, 'TCP_KEEPINTVL': 1, 'TCP_KEEPCNT': 1}"
    return f"""
lifeline._GRACE = 1.0
for link in group.lifeline._links:
    for name, value in {settings}.items():
        link.setsockopt(lifeline.socket.IPPROTO_TCP, getattr(lifeline.socket, name), value)
{textwrap.dedent(work)}"""


def running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return status != "Z"
