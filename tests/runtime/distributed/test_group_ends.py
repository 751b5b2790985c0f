"""Groups that wait, lose a process or a link, or were started by torchrun or SLURM."""

import itertools
import os
import re
import sys

import pytest

from process_groups import TORCHRUN, seconds_since_noted_time, start_group, wait_for_exit
from processes import on_terminal

# The numbers of job steps. Each test has another one, since the port at which the tasks of a step
# meet is computed from it.
STEP_IDS = itertools.count()


def start_slurm_tasks(folder, code_of_each_process, ranks, size, **variables):
    """Start processes (tasks) in the environment in which srun starts the tasks of a job step.

    Args:
        folder: The working folder.
        code_of_each_process: What each task runs; see `process_groups.start_group`.
        ranks: The ranks of the tasks to start; srun itself would start all ranks below `size`.
        size: The number of tasks of the step.
        variables: More environment variables.

    Returns:
        The running tasks, in the order of `ranks`.
    """
    step_id = next(STEP_IDS)
    tasks = []
    for rank in ranks:
        step_variables = {
            "SLURM_PROCID": rank,
            "SLURM_LOCALID": rank,
            "SLURM_NTASKS": size,
            "SLURM_STEP_NUM_TASKS": size,
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": os.getpid(),
            "SLURM_STEP_ID": step_id,
        }
        tasks.append(start_group(folder, code_of_each_process, **step_variables, **variables))
    return tasks


def error_messages(stderr):
    """Return the lines of standard error that are error messages of bleuprint."""
    return [line for line in stderr.splitlines() if line.startswith("bleuprint: error: ")]


def test_a_process_that_hangs_ends_the_group_after_the_timeout(tmp_path):
    """Process 1 hangs for 60 s. Process 0 waits for it at the barrier, for 4 s only."""
    code_of_each_process = """
    if rank == 1:
        time.sleep(60)
    note_time()
    group.barrier()
    """

    launcher = start_group(tmp_path, code_of_each_process, processes=2, BLEUPRINT_TIMEOUT=4)
    result = wait_for_exit(launcher)

    assert result.status == os.EX_UNAVAILABLE  # lost another process
    assert re.fullmatch(
        r"bleuprint: error: process 0 of 2 on \S+ lost another process: "
        r"Timed out waiting 4000ms.*\n",
        result.stderr,
    )
    assert 4 <= seconds_since_noted_time(tmp_path) < 20


def test_an_error_says_that_process_0_does_not_answer(tmp_path):
    """Of three processes, process 0 is not started. The others must not wait for it forever."""
    tasks = start_slurm_tasks(
        tmp_path,
        "all_reduce_forever(group)",
        ranks=[1, 2],
        size=3,
        BLEUPRINT_TIMEOUT=5,
    )
    result_1, result_2 = [wait_for_exit(task) for task in tasks]

    no_answer = r"process 0 does not answer at localhost:\d+ within 5 s \(BLEUPRINT_TIMEOUT\)\n"
    assert result_1.status == 1
    assert re.fullmatch(rf"bleuprint: error: process 1 of 3: {no_answer}", result_1.stderr)
    assert result_2.status == 1
    assert re.fullmatch(rf"bleuprint: error: process 2 of 3: {no_answer}", result_2.stderr)


def test_process_0_names_the_processes_that_did_not_join(tmp_path):
    """Of four processes, only 0 and 2 are started."""
    tasks = start_slurm_tasks(
        tmp_path,
        "all_reduce_forever(group)",
        ranks=[0, 2],
        size=4,
        BLEUPRINT_TIMEOUT=5,
    )
    result_0, result_2 = [wait_for_exit(task) for task in tasks]

    assert result_0.status == 1
    assert error_messages(result_0.stderr) == [
        "bleuprint: error: processes 1, 3 of 4 did not join within 5 s (BLEUPRINT_TIMEOUT)"
    ]
    # Process 2 gives up at the same moment, or finds that process 0 has just ended.
    assert result_2.status in (1, os.EX_UNAVAILABLE)
    assert len(error_messages(result_2.stderr)) == 1


def test_torchrun_restarts_all_processes_when_one_is_killed(tmp_path):
    """At the first attempt, process 0 kills itself; the second attempt succeeds."""
    code_of_each_process = """
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    Path(f"rank{rank}attempt{attempt}").touch()
    if attempt == "0":
        if rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        all_reduce_forever(group)
    """

    torchrun = (*TORCHRUN, "--nproc-per-node=2", "--max-restarts=1")
    result = wait_for_exit(start_group(tmp_path, code_of_each_process, *torchrun))

    assert result.status == 0, result.stderr
    assert (tmp_path / "rank0attempt0").exists()
    assert (tmp_path / "rank0attempt1").exists()
    assert (tmp_path / "rank1attempt1").exists()


def test_an_error_under_torchrun_is_printed_without_a_traceback(tmp_path):
    """Process 1 of 2, which torchrun starts, raises an error, so process 0 loses it."""
    code_of_each_process = """
    if rank == 1:
        raise UserError("file is empty")
    all_reduce_forever(group)
    """

    torchrun = (*TORCHRUN, "--nproc-per-node=2")
    result = wait_for_exit(start_group(tmp_path, code_of_each_process, *torchrun))

    assert result.status == 1
    causes = []
    for line in result.stderr.splitlines():
        if line.startswith("bleuprint: ") and "lost another process" not in line:
            causes.append(line)
    assert causes == ["bleuprint: error: file is empty"]
    # PyTorch begins each line of a process's Python traceback with "[rank1]: ".
    assert "[rank" not in result.stderr
    # This line is in torchrun's own report, which it prints at the end.
    assert "traceback : file is empty" in result.stderr


def test_the_tasks_of_a_slurm_step_form_one_group(tmp_path):
    """Each task has the rank that SLURM gave it, and a sum over the group adds both vectors."""
    code_of_each_process = """
    assert group.size == 2
    assert rank == int(os.environ["SLURM_PROCID"])
    total = group.all_reduce(torch.tensor([1.0, rank]))
    assert total.tolist() == [1 + 1, 0 + 1]
    """

    tasks = start_slurm_tasks(tmp_path, code_of_each_process, ranks=[0, 1], size=2)
    results = [wait_for_exit(task) for task in tasks]

    for result in results:
        assert result.stderr == ""
        assert result.status == 0


@pytest.mark.parametrize(
    ("killed_rank", "code_of_survivors"),
    [
        pytest.param(0, "all_reduce_forever(group)", id="while-adding"),
        pytest.param(1, "pending_sums[-1].wait()", id="while-waiting-for-a-sum"),
        pytest.param(2, "while True: group.any(False)", id="while-exchanging-flags"),
    ],
)
def test_the_tasks_of_a_slurm_step_end_when_one_is_killed(tmp_path, killed_rank, code_of_survivors):
    """Three tasks begin sums over the group, of which the killed task begins only the first 3.

    Without an error, the other two would wait for it until the end of the SLURM job.
    """
    code_of_each_process = f"""
    sum_count = 3 if rank == {killed_rank} else 8
    pending_sums = [group.start_all_reduce(torch.ones(3)) for _ in range(sum_count)]
    if rank == {killed_rank}:
        note_time()
        os.kill(os.getpid(), signal.SIGKILL)
    {code_of_survivors}
    """

    tasks = start_slurm_tasks(tmp_path, code_of_each_process, ranks=[0, 1, 2], size=3)
    results = [wait_for_exit(task) for task in tasks]

    assert seconds_since_noted_time(tmp_path) < 30
    for rank, result in enumerate(results):
        if rank == killed_rank:
            assert result.status == -9  # ended by signal 9, SIGKILL
            assert result.stderr == ""
        else:
            assert result.status == os.EX_UNAVAILABLE  # lost another process
            assert re.fullmatch(
                rf"bleuprint: error: process {rank} of 3 on \S+ lost another process: .*\n",
                result.stderr,
            )


def test_an_error_message_on_a_terminal_replaces_the_progress_bar():
    """The message begins at the start of the line and clears it."""
    program = """
import sys
from bleuprint.runtime.errors import print_message
sys.stderr.write("45 %")  # a progress bar, which does not end its line
print_message("file is empty")
"""

    shown = on_terminal([sys.executable, "-c", program], env={**os.environ, "TERM": "xterm"})

    clear_line = "\r\x1b[K"
    assert shown == f"45 %{clear_line}bleuprint: error: file is empty\r\n"
