"""The processes of one machine share the plan of an epoch, which one of them computes."""

import os
import signal
import time
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from bleuprint.dataset.batching import plan_epoch
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.shared_plans import SharedPlans, epoch_plans

LENGTHS = np.arange(2, 302)
# Processes that load the test's libraries only once.
PROCESSES = get_context("forkserver")


def plan_of(epoch):
    """Return the plan of an epoch of 300 pairs."""
    return plan_epoch(LENGTHS, LENGTHS, 1000, 1, epoch)


class Planner:
    """Plans epochs, and counts how often: each time, it appends a line to a file."""

    def __init__(self, log, seconds=0.0):
        """Set the file of the count, and how long planning takes at least."""
        self.log = log
        self.seconds = seconds

    def __call__(self, epoch):
        with self.log.open("a") as file:
            file.write(f"{epoch}\n")
        time.sleep(self.seconds)
        return plan_of(epoch)


def use_plans(planner, folder, processes, epochs, results, barrier):
    """Read the plans of some epochs in order, and send their batches back.

    Args:
        planner: Plans an epoch.
        folder: The folder of the plans.
        processes: The number of processes that share them.
        epochs: The number of epochs.
        results: The queue to which the batches of all epochs are sent.
        barrier: Where the processes wait for each other at the end, as those of a training do.
    """
    plans = SharedPlans(planner, folder, "start", processes)
    batches = []
    for epoch in range(epochs):
        batches.append([rows.tolist() for rows in plans(epoch)])
    barrier.wait()
    plans.close()
    results.put(batches)


def files_in(folder):
    """Return the names of the plans in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_get_equal_plans_of_which_each_is_computed_once(tmp_path, processes):
    planner = Planner(tmp_path / "log", seconds=0.2)
    folder = tmp_path / "plans"
    results = PROCESSES.Queue()
    barrier = PROCESSES.Barrier(processes)
    started = []
    for _ in range(processes):
        arguments = (planner, folder, processes, 3, results, barrier)
        process = PROCESSES.Process(target=use_plans, args=arguments)
        process.start()
        started.append(process)
    batches_of_processes = [results.get(timeout=100) for _ in started]
    for process in started:
        process.join()

    expected = [[rows.tolist() for rows in plan_of(epoch)] for epoch in range(3)]
    assert batches_of_processes == [expected] * processes
    assert (tmp_path / "log").read_text() == "0\n1\n2\n"
    assert files_in(folder) == []


def test_the_file_of_a_plan_is_removed_when_the_last_process_has_it_open(tmp_path):
    first, second, third = [SharedPlans(plan_of, tmp_path, "start", 3) for _ in range(3)]
    plan = first(0)
    assert files_in(tmp_path) == ["start-0.1"]
    second(0)
    assert files_in(tmp_path) == ["start-0.2"]

    third(0)

    assert files_in(tmp_path) == []
    assert [rows.tolist() for rows in plan] == [rows.tolist() for rows in plan_of(0)]


def test_a_process_may_be_epochs_ahead_of_another_one(tmp_path):
    """With an epoch of one update, one process may read several epochs ahead."""
    log = tmp_path / "log"
    fast = SharedPlans(Planner(log), tmp_path / "plans", "start", 2)
    slow = SharedPlans(Planner(log), tmp_path / "plans", "start", 2)
    for epoch in range(5):
        fast(epoch)

    batches = [[rows.tolist() for rows in slow(epoch)] for epoch in range(5)]

    assert batches == [[rows.tolist() for rows in plan_of(epoch)] for epoch in range(5)]
    assert log.read_text() == "0\n1\n2\n3\n4\n"
    assert files_in(tmp_path / "plans") == []


def test_the_end_of_a_training_removes_plans_that_were_read_ahead(tmp_path):
    plans = SharedPlans(plan_of, tmp_path, "start", 2)
    plans(0)

    plans.close()

    assert files_in(tmp_path) == []


def test_a_killed_process_leaves_a_plan_that_the_next_start_removes_and_does_not_read(tmp_path):
    """The first process is killed while it computes; another start has its file in the folder."""
    planner = Planner(tmp_path / "log", seconds=100)
    folder = tmp_path / "plans"
    SharedPlans(plan_of, folder, "earlier", 2)(0)
    (folder / "earlier-1.0").write_bytes(b"half a plan")
    results = PROCESSES.Queue()
    arguments = (planner, folder, 2, 1, results, PROCESSES.Barrier(2))
    killed = PROCESSES.Process(target=use_plans, args=arguments)
    killed.start()
    while not (tmp_path / "log").exists():
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()

    plan = SharedPlans(plan_of, folder, "later", 2)(0)

    assert [rows.tolist() for rows in plan] == [rows.tolist() for rows in plan_of(0)]
    assert files_in(folder) == ["later-0.1"]


def test_a_removed_plan_that_nfs_keeps_under_another_name_does_not_end_the_training(tmp_path):
    """NFS keeps a removed file while a process has it mapped. To remove it again fails (EBUSY).

    Here a folder takes its place, since it cannot be removed by `unlink` either.
    """
    (tmp_path / ".nfs00000000a1").mkdir()

    plan = SharedPlans(plan_of, tmp_path, "start", 2)(1)

    assert [rows.tolist() for rows in plan] == [rows.tolist() for rows in plan_of(1)]
    assert files_in(tmp_path) == [".nfs00000000a1", "start-1.1"]


def test_a_plan_that_cannot_be_written_leaves_no_file(tmp_path):
    """As on a full disk: the error is raised, and the next process starts from the beginning."""

    class Unwritable:
        def write(self, path):
            path.write_bytes(b"a part")
            raise OSError(28, "No space left on device")

    plans = SharedPlans(lambda _: Unwritable(), tmp_path, "start", 2)

    with pytest.raises(OSError, match="No space left"):
        plans(0)

    assert files_in(tmp_path) == []


def test_a_process_that_is_alone_on_its_machine_writes_no_file(tmp_path):
    group = Group(0, 1, torch.device("cpu"))

    with epoch_plans(plan_of, tmp_path, group) as plan_of_epoch:
        plan = plan_of_epoch(2)

    assert [rows.tolist() for rows in plan] == [rows.tolist() for rows in plan_of(2)]
    assert list(tmp_path.iterdir()) == []
