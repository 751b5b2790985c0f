"""Groups that wait, lose a process or a link, or were started by torchrun or SLURM."""

import os
import re
import sys

import pytest

from process_groups import GO_ON, TORCHRUN, end, seconds_since_it_died, start
from processes import on_terminal


def test_a_process_that_hangs_ends_all_by_the_timeout(tmp_path):
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


@pytest.mark.parametrize(("came", "size"), [([1, 2], 3), ([0, 2], 4)])
def test_processes_that_never_come_are_named(tmp_path, came, size):
    tasks = [
        start(tmp_path, GO_ON, BLEUPRINT_TIMEOUT=5, **step(rank, size, 6 + size)) for rank in came
    ]
    ends = [end(task) for task in tasks]
    for rank, (status, stderr) in zip(came, ends, strict=True):
        assert status in (1, 69)
        (line,) = [line for line in stderr.splitlines() if line.startswith("bleuprint: error: ")]
        if 0 not in came:
            assert f"process {rank} of 3: no answer of process 0 at localhost:" in line
            assert line.endswith("within 5 s (BLEUPRINT_TIMEOUT)")
        elif rank == 0:  # it holds the store: the others may find that lost at the same moment
            assert line == (
                "bleuprint: error: of 4 processes, 1, 3 did not join within 5 s (BLEUPRINT_TIMEOUT)"
            )


def test_torchrun_restarts_all_when_one_is_killed(tmp_path):
    torchrun = (*TORCHRUN, "--nproc-per-node=2", "--max-restarts=1")
    work = f"""
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    Path(f"rank{{rank}}attempt{{attempt}}").touch()
    if attempt == "0":
        if rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        {GO_ON}
    """
    status, stderr = end(start(tmp_path, work, *torchrun))
    assert status == 0, stderr
    tried = [path.name for path in sorted(tmp_path.glob("rank?attempt?"))]
    assert {"rank0attempt0", "rank0attempt1", "rank1attempt1"} <= set(tried)


def test_torchrun_starts_them_as_well(tmp_path):
    work = f"""
    if rank == 1:
        raise UserError("shelf 7 is empty")
    {GO_ON}
    """
    status, stderr = end(start(tmp_path, work, *TORCHRUN, "--nproc-per-node=2"))
    lines = sorted(line for line in stderr.split("\n") if line.startswith("bleuprint: "))
    assert (status, lines[-1]) == (1, "bleuprint: error: shelf 7 is empty")
    assert all("lost another process" in line for line in lines[:-1])
    assert "[rank" not in stderr  # no traceback; the report after it is that of torchrun
    assert "traceback : shelf 7 is empty" in stderr


def test_under_slurm_each_task_is_one_of_them(tmp_path):
    work = """
    assert (group.size, group.rank) == (2, int(os.environ["SLURM_PROCID"]))
    assert group.all_reduce(torch.tensor([1.0, rank])).tolist() == [2, 1]
    """
    tasks = [start(tmp_path, work, **step(rank, 2, 3)) for rank in range(2)]
    assert [end(task) for task in tasks] == [(0, "")] * 2


@pytest.mark.parametrize(
    ("killed", "others"),
    [(0, GO_ON), (1, "pending[-1].wait()"), (2, "while True: group.any(False)")],
)
def test_under_slurm_a_killed_task_ends_the_others(tmp_path, killed, others):
    work = f"""
    pending = [group.start_all_reduce(torch.ones(3)) for _ in range(8 if rank != {killed} else 3)]
    if rank == {killed}:
        note_time()
        os.kill(os.getpid(), signal.SIGKILL)
    {others}
    """
    tasks = [start(tmp_path, work, **step(rank, 3, killed)) for rank in range(3)]
    ends = [end(task) for task in tasks]
    assert seconds_since_it_died(tmp_path) < 30
    assert [status for status, _ in ends] == [-9 if rank == killed else 69 for rank in range(3)]
    for rank, (_, stderr) in enumerate(ends):
        lost = rf"bleuprint: error: process {rank} of 3 on \S+ lost another process: .*\n"
        assert re.fullmatch("" if rank == killed else lost, stderr)


def test_on_a_terminal_the_line_replaces_a_bar():
    command = (
        "import sys; sys.stderr.write('45 %'); "
        "from bleuprint.runtime.errors import print_message; print_message('no')"
    )
    said = on_terminal([sys.executable, "-c", command], env={**os.environ, "TERM": "xterm"})
    assert said == "45 %\r\x1b[Kbleuprint: error: no\r\n"


def step(rank, size, number):
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
