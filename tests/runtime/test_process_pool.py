import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.process_pool import map_parts


def double(numbers):
    time.sleep(0.002 * (5 - numbers[0] % 5))
    return [2 * number for number in numbers], os.getpid()


def refuse(numbers):
    if 6 in numbers:
        raise UserError("six")
    return numbers


def die(numbers):
    if 6 in numbers:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers


def give(function):
    return function


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_are_in_order(count):
    results = list(map_parts(partial(give, double), ([i] for i in range(30)), count))
    assert [numbers for numbers, _ in results] == [[2 * i] for i in range(30)]
    assert (os.getpid() in {pid for _, pid in results}) == (count == 1)


def test_a_few_parts_start_no_processes():
    """Three sentences are translated sooner than processes start."""
    results = list(map_parts(partial(give, double), ([i] for i in range(3)), 4))
    assert [numbers for numbers, _ in results] == [[0], [2], [4]]
    assert {pid for _, pid in results} == {os.getpid()}


def test_parts_are_taken_only_as_they_are_needed():
    taken = []
    parts = ([taken.append(i) or i] for i in range(1000))
    results = map_parts(partial(give, refuse), parts, 2)
    next(results)
    results.close()
    assert len(taken) < 20


def test_a_mistake_found_by_a_worker_reaches_the_user():
    with pytest.raises(UserError, match="six"):
        list(map_parts(partial(give, refuse), ([i] for i in range(30)), 2))


def test_a_killed_worker_is_reported_in_one_line():
    with pytest.raises(UserError, match="worker process was killed"):
        list(map_parts(partial(give, die), ([i] for i in range(30)), 2))


def interrupted(part):
    os.kill(os.getpid(), signal.SIGTERM)
    return part


def test_signals_are_left_to_the_parent():
    parts = range(10)
    assert list(map_parts(partial(give, interrupted), iter(parts), 2)) == list(parts)


SLEEPER = r"""
import os, sys, time
from functools import partial
from bleuprint.runtime.process_pool import map_parts
def work(part):
    os.write(1, b"%d\n" % os.getpid())  # in one piece: two processes write
    time.sleep(60)
def give(): return work
if __name__ == "__main__":
    list(map_parts(give, ([i] for i in range(30)), 2))
"""


def test_workers_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    pids = [int(parent.stdout.readline()) for _ in range(2)]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(map(_running, pids)):
        time.sleep(0.05)
    assert not any(map(_running, pids))


def _running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
