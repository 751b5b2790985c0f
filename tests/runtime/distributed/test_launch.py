"""Processes that train together: how they start and end, with one line and status for all."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from bleuprint.runtime.distributed import launch
from process_groups import (
    GO_ON,
    SCRIPT,
    end,
    seconds_since_it_died,
    start,
    wait_for,
    wait_until_none_is_left,
)


def test_they_add_up_agree_and_leave_one_after_the_other(tmp_path):
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


def test_they_show_each_other_texts(tmp_path):
    work = """
    texts = ["", "zwei Äpfel", "x" * 20_000]
    assert group.gather(texts[rank]) == ["", "zwei Äpfel", "x" * 16_384]
    assert group.gather("") == ["", "", ""]
    host = os.uname().nodename
    assert group.process_names() == [f"process {each} of 3 on {host}" for each in range(3)]
    """
    assert end(start(tmp_path, work, processes=3)) == (0, "")


@pytest.mark.parametrize(
    ("condition", "who"), [("rank == 1", "process 1 of 3 on {}: "), ("rank >= 0", "")]
)
def test_what_one_meets_ends_all_by_its_name(tmp_path, condition, who):
    work = f"""
    with group.raise_together():
        Path(f"begun{{rank}}").touch()
    with group.raise_together():
        if {condition}:
            raise UserError("shelf 7 is empty")
    """
    said = f"bleuprint: error: {who.format(os.uname().nodename)}shelf 7 is empty\n"
    assert end(start(tmp_path, work, processes=3)) == (1, said)
    assert len([*tmp_path.glob("begun*")]) == 3


@pytest.mark.parametrize("processes", [2, 3])
def test_sums_that_are_begun_together_end_in_any_order(tmp_path, processes):
    work = """
    sums = [torch.full((size,), (rank + 1.0) * size) for size in (1, 100_000, 3, 40_000)]
    pending = [group.start_all_reduce(each) for each in sums]
    assert group.broadcast(rank + 5) == 5 and group.any(rank == 1) and not group.any(False)
    for each in reversed(pending):
        each.wait()
    factor = sum(range(1, group.size + 1))
    assert all((each == factor * len(each)).all() for each in sums)
    """
    assert end(start(tmp_path, work, processes=processes)) == (0, "")


@pytest.mark.parametrize("ranks", [(1,), (0, 1)])
def test_an_error_is_printed_once_and_ends_all(tmp_path, ranks):
    work = f"""
    if rank in {ranks}:
        note_time()
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    assert end(start(tmp_path, work, processes=2)) == (1, "bleuprint: error: shelf 7 is empty\n")
    assert seconds_since_it_died(tmp_path) < 30


def test_an_error_before_they_meet_is_printed_once(tmp_path):
    script = SCRIPT.replace("group = init_process_group()", 'raise UserError("no shelf")')
    (tmp_path / "command.py").write_text(script)
    assert end(start(tmp_path, "", processes=2)) == (1, "bleuprint: error: no shelf\n")


def test_a_bug_shows_one_traceback(tmp_path):
    work = f"""
    if rank == 1:
        raise ValueError("seven shelves")
    {GO_ON}
    """
    status, said = end(start(tmp_path, work, processes=2))
    assert status == 1
    assert said.count("Traceback") == 1
    assert said.endswith("ValueError: seven shelves\n")


@pytest.mark.parametrize(
    ("act", "others", "status", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", GO_ON, 1,
         "was ended by signal 9 (Killed)\n"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "time.sleep(60)", 1,
         "was ended by signal 11 (Segmentation fault)\n"),
        ("os._exit(3)", GO_ON, 3, "ended with status 3\n"),
    ],
)  # fmt: skip
def test_one_that_ends_without_a_word_is_named(tmp_path, act, others, status, said):
    work = f"""
    if rank == 1:
        note_time()
        {act}
    {others}
    """
    ended, stderr = end(start(tmp_path, work, processes=2))
    assert (ended, stderr.count("\n")) == (status, 1)
    assert stderr.startswith(f"bleuprint: error: process 1 of 2 {said}")
    assert seconds_since_it_died(tmp_path) < 30


def test_process_0_is_named_though_the_others_lose_it(tmp_path):
    """It has the store of the group, so that the others fail at the same moment."""
    work = f"""
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    {GO_ON}
    """
    line = "bleuprint: error: process 0 of 3 was ended by signal 9 (Killed)\n"
    assert end(start(tmp_path, work, processes=3)) == (1, line)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("TIMEOUT", "no answer within 300 s (BLEUPRINT_TIMEOUT)"),
        ("REMOTE_ERROR", "its communication failed (REMOTE_ERROR)"),
    ],
)
def test_what_nccl_has_found_ends_a_process_that_waits_for_its_gpu(tmp_path, error, said):
    work = f"""
    from types import SimpleNamespace
    from bleuprint.runtime.distributed import nccl
    errors = iter(["SUCCESS", "{error}"])
    if rank == 1:
        name = "process 1 of 2 on A"
        nccl.end_process_after_error(lambda: SimpleNamespace(name=next(errors)), name)
    time.sleep(60)
    """
    line = f"bleuprint: error: process 1 of 2 on A lost another process: NCCL: {said}\n"
    assert end(start(tmp_path, work, processes=2)) == (69, line)


def test_sigterm_saves_on_all(tmp_path):
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
    assert end(process) == (75, "bleuprint: note: saved at update 7\n")
    assert (tmp_path / "saved0").exists()
    assert (tmp_path / "saved1").exists()


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, "bleuprint: note: interrupted\n"), (signal.SIGTERM, 143, "")],
)
def test_a_signal_reaches_all(tmp_path, number, status, said):
    process = start(tmp_path, GO_ON, processes=2)
    wait_for(tmp_path / "joined")
    process.send_signal(number)
    assert end(process) == (status, said)


def test_the_end_of_its_terminal_is_a_sigterm_after_which_writing_does_not_fail(tmp_path):
    program = """
import signal, sys, time
from pathlib import Path
from bleuprint.runtime.distributed.launch import start_processes
received = []
signal.signal(signal.SIGTERM, lambda *_: received.append(True))
start_processes()
Path("ready").touch()
while not received:
    time.sleep(0.01)
print("stopped", flush=True)
print("stopped", file=sys.stderr, flush=True)
Path("saved").touch()
"""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup, too
        os.execv(sys.executable, [sys.executable, "-c", program])
    wait_for(tmp_path / "ready")
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    assert (tmp_path / "saved").exists()


def test_one_that_outlives_the_signal_does_not_speak_of_the_others(tmp_path):
    work = f"""
    if rank == 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path("ready").touch()
    {GO_ON}
    """
    process = start(tmp_path, work, processes=2)
    wait_for(tmp_path / "ready")
    process.terminate()
    assert end(process) == (143, "")


def test_they_end_with_their_launcher(tmp_path):
    process = start(tmp_path, "time.sleep(60)", processes=2, cold=True)
    wait_for(tmp_path / "joined")
    process.kill()
    process.communicate(timeout=60)  # they hold its pipes open
    wait_until_none_is_left(tmp_path)


def test_they_end_with_a_launcher_that_is_killed_before_they_join(tmp_path):
    work = "pass"
    script = SCRIPT.replace(
        "group = init_process_group()",
        "Path(f\"early{os.environ['RANK']}\").touch(); time.sleep(60)",
    )
    (tmp_path / "command.py").write_text(script)
    process = start(tmp_path, work, processes=2, cold=True)
    for rank in range(2):
        wait_for(tmp_path / f"early{rank}")
    process.kill()
    process.communicate(timeout=60)
    wait_until_none_is_left(tmp_path)


def test_they_end_with_a_launcher_that_was_killed_before_they_ran(tmp_path):
    """As when the launcher is killed between starting a process and that process's first line."""
    launcher = subprocess.Popen([sys.executable, "-c", ""])
    script = """
import os, sys
from pathlib import Path
from bleuprint.runtime.launcher import end_with_launcher
end_with_launcher()
Path("survived").touch()
"""
    command = [sys.executable, "-c", script]
    for state in ("zombie", "gone"):
        if state == "zombie":
            os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
        else:
            launcher.wait()
        environment = {**os.environ, "BLEUPRINT_LAUNCHED": str(launcher.pid)}
        done = subprocess.run(command, cwd=tmp_path, env=environment)
        assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "survived").exists()
    own = {**os.environ, "BLEUPRINT_LAUNCHED": str(os.getpid())}
    subprocess.run(command, cwd=tmp_path, env=own, check=True)
    assert (tmp_path / "survived").exists()


@pytest.fixture
def srun(tmp_path, monkeypatch):
    """A function that puts a shell script in the place of srun, and runs a step; its status."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(launch, "POLL_SECONDS", 0.01)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(script):
        path = tmp_path / "srun"
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        with pytest.raises(SystemExit) as raised:
            launch.launch_slurm_step(3, 2)
        return raised.value.code

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + 9)]
)
def test_a_slurm_step_ends_with_the_status_of_srun(srun, script, status):
    assert srun(script) == status


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_reaches_the_tasks_of_a_slurm_step_as_sigusr1(srun, name):
    """By the script, once it is ready for it."""
    assert srun(f"trap 'exit 75' USR1; kill -{name} $PPID; while :; do sleep 0.01; done") == 75


def test_a_slurm_step_has_two_tasks_on_each_of_three_nodes(srun, tmp_path):
    assert srun(f"printf '%s\\n' \"$@\" > {tmp_path}/arguments") == 0
    options = (tmp_path / "arguments").read_text().splitlines()
    assert {"--nodes=3", "--ntasks=6", "--ntasks-per-node=2"} <= {*options}
    # the command itself follows
    assert options[options.index(sys.executable) :] == [sys.executable, *sys.orig_argv[1:]]
