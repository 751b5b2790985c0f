"""Processes that train together: how they start and end, with one line and status for all."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from process_groups import (
    seconds_since_noted_time,
    start_group,
    wait_for_exit,
    wait_for_file,
    wait_until_no_process_is_left,
)


def test_all_reduce_adds_the_tensors_of_three_processes(tmp_path):
    """Each of the processes, with rank 0, 1 or 2, gets the sum."""
    code_of_each_process = """
    assert group.size == 3
    total = group.all_reduce(torch.tensor([1.0, rank]))
    assert total.tolist() == [1 + 1 + 1, 0 + 1 + 2]
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""  # no traceback of a failed assertion
    assert result.status == 0


def test_any_tells_all_processes_whether_one_of_them_has_a_flag(tmp_path):
    """First only process 2 passes True, then only process 0, then none of the three."""
    code_of_each_process = """
    assert group.any(rank == 2) is True
    assert group.any(rank == 0) is True
    assert group.any(False) is False
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""  # no traceback of a failed assertion
    assert result.status == 0


def test_three_processes_share_the_cores_of_the_machine(tmp_path):
    """OMP_NUM_THREADS limits the threads of each process; the default is one per core."""
    code_of_each_process = """
    line = f"{os.environ['OMP_NUM_THREADS']} threads\\n"
    os.write(1, line.encode())  # in one piece, so that the lines of processes are not mixed
    """
    cores = len(os.sched_getaffinity(0))
    threads_per_process = max(1, cores // 3)

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""
    assert result.status == 0
    assert result.stdout == f"{threads_per_process} threads\n" * 3


def test_process_0_can_work_on_after_the_other_processes_have_ended(tmp_path):
    """After a training, process 0 alone exports the model; the launcher must wait for it."""
    code_of_each_process = """
    group.barrier()
    if group.is_main:
        for other_rank in (1, 2):
            process_id = Path(f"pid{other_rank}").read_text()
            while Path("/proc", process_id).exists():
                time.sleep(0.05)
        time.sleep(0.5)
        print("exported")
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""
    assert result.status == 0
    assert result.stdout == "exported\n"


def test_gather_returns_the_texts_of_all_processes_in_the_order_of_ranks(tmp_path):
    """Each process passes its own text and gets all three. A text is cut after 16 kB."""
    code_of_each_process = """
    texts = ["", "zwei Äpfel", "x" * 20_000]
    assert group.gather(texts[rank]) == ["", "zwei Äpfel", "x" * 16 * 1024]
    assert group.gather("") == ["", "", ""]
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""  # no traceback of a failed assertion
    assert result.status == 0


def test_each_process_knows_the_names_of_all_processes(tmp_path):
    code_of_each_process = """
    host = os.uname().nodename
    assert group.process_names() == [
        f"process 0 of 3 on {host}",
        f"process 1 of 3 on {host}",
        f"process 2 of 3 on {host}",
    ]
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.stderr == ""  # no traceback of a failed assertion
    assert result.status == 0


def test_raise_together_ends_all_processes_and_names_the_one_with_the_error(tmp_path):
    """The error of one process is raised on all three, since the others would wait for it."""
    code_of_each_process = """
    with group.raise_together():
        Path(f"no-error-yet{rank}").touch()
    with group.raise_together():
        if rank == 1:
            raise UserError("file is empty")
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    host = os.uname().nodename
    assert result.status == 1
    assert result.stderr == f"bleuprint: error: process 1 of 3 on {host}: file is empty\n"
    # The first block raised nothing, so that all processes went on.
    assert len(list(tmp_path.glob("no-error-yet*"))) == 3


def test_raise_together_names_no_process_if_all_have_the_same_error(tmp_path):
    """For example, a file that all processes read is empty."""
    code_of_each_process = """
    with group.raise_together():
        Path(f"no-error-yet{rank}").touch()
    with group.raise_together():
        raise UserError("file is empty")
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.status == 1
    assert result.stderr == "bleuprint: error: file is empty\n"
    # The first block raised nothing, so that all processes went on.
    assert len(list(tmp_path.glob("no-error-yet*"))) == 3


@pytest.mark.parametrize("processes", [2, 3])
def test_sums_that_run_at_the_same_time_can_be_awaited_in_any_order(tmp_path, processes):
    """Each process begins four sums, then communicates otherwise, then waits for the last first.

    Process 0 adds tensors of 1 x size, process 1 of 2 x size and process 2 of 3 x size.
    """
    code_of_each_process = """
    tensors = []
    for size in (1, 100_000, 3, 40_000):
        tensors.append(torch.full((size,), (rank + 1.0) * size))
    pending_sums = [group.start_all_reduce(tensor) for tensor in tensors]

    assert group.broadcast(rank + 5) == 5  # the number of process 0
    assert group.any(rank == 1) is True
    assert group.any(False) is False
    for pending_sum in reversed(pending_sums):
        pending_sum.wait()

    factor = {2: 1 + 2, 3: 1 + 2 + 3}[group.size]
    for tensor in tensors:
        assert (tensor == factor * len(tensor)).all()
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=processes))

    assert result.stderr == ""  # no traceback of a failed assertion
    assert result.status == 0


@pytest.mark.parametrize(
    "failing_ranks",
    [pytest.param((1,), id="one-process-fails"), pytest.param((0, 1), id="both-fail")],
)
def test_an_error_is_printed_once_and_ends_all_processes(tmp_path, failing_ranks):
    """The launcher prints the error of the first process that failed, and ends the others."""
    code_of_each_process = f"""
    if rank in {failing_ranks}:
        note_time()
        raise UserError("file is empty")
    all_reduce_forever(group)
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=2))

    assert result.status == 1
    assert result.stderr == "bleuprint: error: file is empty\n"
    assert seconds_since_noted_time(tmp_path) < 30


def test_an_error_before_the_processes_join_is_printed_once(tmp_path):
    """Both processes raise it in the place of joining the group."""
    join = 'raise UserError("file is empty")'

    result = wait_for_exit(start_group(tmp_path, "pass", processes=2, join=join))

    assert result.status == 1
    assert result.stderr == "bleuprint: error: file is empty\n"


def test_a_bug_in_one_process_prints_one_traceback(tmp_path):
    """Unlike UserError, a ValueError is a bug. Process 0, which loses process 1, prints nothing."""
    code_of_each_process = """
    if rank == 1:
        raise ValueError("a bug")
    all_reduce_forever(group)
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=2))

    assert result.status == 1
    assert result.stderr.count("Traceback") == 1
    assert result.stderr.endswith("ValueError: a bug\n")


@pytest.mark.parametrize(
    ("end_process", "code_of_process_0", "status", "description"),
    [
        pytest.param(
            "os.kill(os.getpid(), signal.SIGKILL)",
            "all_reduce_forever(group)",
            1,
            "was ended by signal 9 (Killed)\n",
            id="killed",
        ),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "time.sleep(60)",
            1,
            "was ended by signal 11 (Segmentation fault)\n",
            id="crashed",
        ),
        pytest.param(
            "os._exit(3)",
            "all_reduce_forever(group)",
            3,
            "ended with status 3\n",
            id="exited",
        ),
    ],
)
def test_the_launcher_names_a_process_that_ends_without_a_message(
    tmp_path, end_process, code_of_process_0, status, description
):
    """The launcher, which started two processes, prints one line and ends the other process."""
    code_of_each_process = f"""
    if rank == 1:
        note_time()
        {end_process}
    {code_of_process_0}
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=2))

    assert result.status == status
    assert result.stderr == f"bleuprint: error: process 1 of 2 {description}"
    assert seconds_since_noted_time(tmp_path) < 30


def test_the_launcher_names_process_0_when_it_is_killed(tmp_path):
    """Processes 1 and 2 lose process 0 and fail at the same moment; they are not the cause."""
    code_of_each_process = """
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    all_reduce_forever(group)
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=3))

    assert result.status == 1
    assert result.stderr == "bleuprint: error: process 0 of 3 was ended by signal 9 (Killed)\n"


@pytest.mark.parametrize(
    ("nccl_error", "problem"),
    [
        pytest.param("TIMEOUT", "no answer within 300 s (BLEUPRINT_TIMEOUT)", id="timeout"),
        pytest.param("REMOTE_ERROR", "its communication failed (REMOTE_ERROR)", id="lost"),
    ],
)
def test_an_nccl_error_ends_a_process_that_waits_for_its_gpu(tmp_path, nccl_error, problem):
    """NCCL communicates between GPUs. A thread reads its state, here first SUCCESS, then an error.

    The main thread of a process cannot do so while it waits for its GPU, here for 60 s.
    """
    code_of_each_process = f"""
    from types import SimpleNamespace
    from bleuprint.runtime.distributed import nccl
    states = iter([SimpleNamespace(name="SUCCESS"), SimpleNamespace(name="{nccl_error}")])
    if rank == 1:
        nccl.end_process_after_error(lambda: next(states), "process 1 of 2 on A")
    time.sleep(60)
    """

    result = wait_for_exit(start_group(tmp_path, code_of_each_process, processes=2))

    assert result.status == os.EX_UNAVAILABLE  # lost another process
    assert result.stderr == (
        f"bleuprint: error: process 1 of 2 on A lost another process: NCCL: {problem}\n"
    )


def test_all_processes_save_their_state_when_the_launcher_is_terminated(tmp_path):
    """The launcher passes SIGTERM on to its processes and prints their message once."""
    code_of_each_process = """
    received_signals = []
    signal.signal(signal.SIGTERM, lambda number, frame: received_signals.append(number))
    Path(f"ready{rank}").touch()
    while not group.any(bool(received_signals)):
        time.sleep(0.05)
    Path(f"saved{rank}").touch()
    group.barrier()
    raise Interrupted("saved at update 7")
    """
    launcher = start_group(tmp_path, code_of_each_process, processes=2)
    wait_for_file(tmp_path / "ready0")
    wait_for_file(tmp_path / "ready1")

    launcher.terminate()
    result = wait_for_exit(launcher)

    assert result.status == os.EX_TEMPFAIL  # not finished: start the command again
    assert result.stderr == "bleuprint: note: saved at update 7\n"
    assert (tmp_path / "saved0").exists()
    assert (tmp_path / "saved1").exists()


@pytest.mark.parametrize(
    ("signal_number", "status", "stderr"),
    [
        pytest.param(signal.SIGINT, 128 + 2, "bleuprint: note: interrupted\n", id="SIGINT"),
        pytest.param(signal.SIGTERM, 128 + 15, "", id="SIGTERM"),
    ],
)
def test_a_signal_to_the_launcher_ends_all_processes(tmp_path, signal_number, status, stderr):
    """As in a shell, the exit status is 128 plus the number of the signal."""
    launcher = start_group(tmp_path, "all_reduce_forever(group)", processes=2)
    wait_for_file(tmp_path / "joined")  # written by process 0

    launcher.send_signal(signal_number)
    result = wait_for_exit(launcher)

    assert result.status == status
    assert result.stderr == stderr


def test_a_process_saves_its_state_after_its_terminal_was_closed(tmp_path):
    """Linux then sends SIGHUP. The program gets SIGTERM instead, and its `print` does not fail."""
    program = """
import signal, sys, time
from pathlib import Path
from bleuprint.runtime.distributed.launch import start_processes
received_signals = []
signal.signal(signal.SIGTERM, lambda number, frame: received_signals.append(number))
start_processes()
Path("ready").touch()
while not received_signals:
    time.sleep(0.01)
print("stopped", flush=True)
print("stopped", file=sys.stderr, flush=True)
Path("saved").touch()
"""
    process_id, terminal = pty.fork()
    if process_id == 0:  # in the new process, which has a terminal of its own
        os.chdir(tmp_path)
        # Tests may run under nohup, which lets processes ignore SIGHUP.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-c", program])
    wait_for_file(tmp_path / "ready")

    os.close(terminal)
    _process_id, wait_status = os.waitpid(process_id, 0)

    assert wait_status == 0
    assert (tmp_path / "saved").exists()


def test_a_process_that_ignores_sigterm_does_not_report_that_it_lost_the_other(tmp_path):
    """The signal ends process 0 first. Process 1 then loses it, which is not worth a message."""
    code_of_each_process = """
    if rank == 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path("ready").touch()
    all_reduce_forever(group)
    """
    launcher = start_group(tmp_path, code_of_each_process, processes=2)
    wait_for_file(tmp_path / "ready")

    launcher.terminate()
    result = wait_for_exit(launcher)

    assert result.status == 128 + signal.SIGTERM
    assert result.stderr == ""


def test_processes_end_when_their_launcher_is_killed(tmp_path):
    """A killed launcher cannot end them itself, so Linux does."""
    launcher = start_group(tmp_path, "time.sleep(60)", processes=2, preloaded=False)
    wait_for_file(tmp_path / "joined")  # written by process 0

    launcher.kill()
    launcher.communicate(timeout=60)  # returns when the processes, too, have closed its pipes

    wait_until_no_process_is_left(tmp_path)


def test_processes_that_have_not_joined_yet_end_when_their_launcher_is_killed(tmp_path):
    # Instead of joining the group, each process writes a file and waits.
    join = 'Path("early" + os.environ["RANK"]).touch(); time.sleep(60)'
    launcher = start_group(tmp_path, "pass", processes=2, join=join, preloaded=False)
    wait_for_file(tmp_path / "early0")
    wait_for_file(tmp_path / "early1")

    launcher.kill()
    launcher.communicate(timeout=60)  # returns when the processes, too, have closed its pipes

    wait_until_no_process_is_left(tmp_path)


def run_process_of_launcher(folder, launcher_id):
    """Run a process that writes a file `survived` unless `end_with_launcher` ends it.

    Args:
        folder: The working folder.
        launcher_id: The process id of its launcher.

    Returns:
        Its exit status, which is -9 after SIGKILL.
    """
    program = """
from pathlib import Path
from bleuprint.runtime.launcher import end_with_launcher
end_with_launcher()
Path("survived").touch()
"""
    environment = {**os.environ, "BLEUPRINT_LAUNCHED": str(launcher_id)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, env=environment).returncode


def test_a_process_ends_at_once_if_its_launcher_has_ended_but_is_a_zombie(tmp_path):
    """The launcher was killed between starting the process and the process's first line.

    It stays in the list of processes, as a zombie, until its parent asks for its exit status.
    """
    launcher = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)  # wait, but keep the zombie

    status = run_process_of_launcher(tmp_path, launcher.pid)

    launcher.wait()
    assert status == -signal.SIGKILL
    assert not (tmp_path / "survived").exists()


def test_a_process_ends_at_once_if_its_launcher_is_gone(tmp_path):
    """The launcher was killed between starting the process and the process's first line."""
    launcher = subprocess.Popen([sys.executable, "-c", ""])
    launcher.wait()

    status = run_process_of_launcher(tmp_path, launcher.pid)

    assert status == -signal.SIGKILL
    assert not (tmp_path / "survived").exists()


def test_a_process_runs_on_if_its_launcher_is_alive(tmp_path):
    launcher_id = os.getpid()  # of this test

    status = run_process_of_launcher(tmp_path, launcher_id)

    assert status == 0
    assert (tmp_path / "survived").exists()
