"""Work is divided among processes: results, errors, signals, and how the processes end."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.process_pool import map_parts


def in_each_process(function):
    """Return the argument `prepare` of map_parts: it returns the function to apply to each part."""
    return partial(return_function, function)


def return_function(function):
    """Return the argument; a lambda could not be sent to another process."""
    return function


def double_slowly(number):
    """Return twice the number, and the id of the process; some numbers take longer than others."""
    time.sleep(0.002 * (5 - number % 5))
    return 2 * number, os.getpid()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_are_in_the_order_of_the_parts(workers):
    """The time that a part takes varies, so several processes finish in another order."""
    results = list(map_parts(in_each_process(double_slowly), range(30), workers))

    doubled = [result for result, _ in results]
    assert doubled == list(range(0, 60, 2))


@pytest.mark.parametrize(
    ("parts", "workers", "is_done_here"),
    [
        pytest.param(30, 1, True, id="one worker"),
        pytest.param(30, 2, False, id="two workers"),
        pytest.param(3, 4, True, id="three parts"),
    ],
)
def test_work_for_one_worker_or_of_few_parts_is_done_in_this_process(parts, workers, is_done_here):
    """Starting processes would take longer than, for example, translating three sentences."""
    results = list(map_parts(in_each_process(double_slowly), range(parts), workers))

    process_ids = {process_id for _, process_id in results}
    if is_done_here:
        assert process_ids == {os.getpid()}
    else:
        assert os.getpid() not in process_ids
    assert [result for result, _ in results] == list(range(0, 2 * parts, 2))


def test_only_a_few_parts_are_read_ahead_of_the_results():
    """A corpus may not fit into memory."""
    parts_read = []

    def generate_parts():
        for number in range(1000):
            parts_read.append(number)
            yield number

    results = map_parts(in_each_process(double_slowly), generate_parts(), 2)
    next(results)
    results.close()

    assert len(parts_read) < 20


def refuse_six(number):
    """Raise an error about the number 6, as about a mistake in the user's text."""
    if number == 6:
        raise UserError("six")
    return number


def test_an_error_in_a_worker_process_is_raised_here():
    with pytest.raises(UserError, match="six"):
        list(map_parts(in_each_process(refuse_six), range(30), 2))


def find_a_damaged_model():
    """Raise the error of a damaged file, which a message alone cannot create again."""
    raise DamagedFile(Path("model.safetensors"), "field weight is missing")


def test_an_error_while_a_worker_prepares_is_raised_here_with_its_message():
    """It must not look like the kill of a worker, whose message advises to use less memory."""
    with pytest.raises(UserError, match=r"model\.safetensors is damaged: field weight is missing"):
        list(map_parts(find_a_damaged_model, range(30), 2))


def kill_this_process_at_six(number):
    """Kill the process that works on the number 6, as the kernel does if memory is exhausted."""
    if number == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_killed_worker_process_is_reported_as_a_user_error():
    """A user error is printed in one line, without a traceback."""
    with pytest.raises(UserError, match="worker process was killed"):
        list(map_parts(in_each_process(kill_this_process_at_six), range(30), 2))


def send_sigterm_to_this_process(part):
    """Send SIGTERM to the process that works on a part, and return the part."""
    os.kill(os.getpid(), signal.SIGTERM)
    return part


def test_worker_processes_ignore_sigterm():
    """A cluster sends SIGTERM to all processes; the parent decides when its workers end."""
    results = map_parts(in_each_process(send_sigterm_to_this_process), range(10), 2)

    assert list(results) == list(range(10))


# Two workers print their process ids and then sleep for a minute.
SLEEPING_WORKERS = r"""
import os, time
from bleuprint.runtime.process_pool import map_parts
def sleep(part):
    os.write(1, b"%d\n" % os.getpid())  # a single write: lines of two processes are not mixed
    time.sleep(60)
def prepare(): return sleep
if __name__ == "__main__":
    list(map_parts(prepare, range(30), 2))
"""


def test_workers_end_if_their_parent_is_killed(tmp_path):
    """Otherwise the workers of a killed command would take memory until the machine restarts."""
    script = tmp_path / "sleeping_workers.py"
    script.write_text(SLEEPING_WORKERS)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    worker_ids = [int(parent.stdout.readline()), int(parent.stdout.readline())]

    parent.kill()
    parent.wait()

    wait_for_end(worker_ids, seconds=60)
    assert not is_running(worker_ids[0])
    assert not is_running(worker_ids[1])


def test_after_ctrl_c_nothing_waits_for_the_parts_that_workers_have_begun(tmp_path):
    """A part may be a piece of a long text, which takes minutes to translate; here it is 60 s."""
    script = tmp_path / "sleeping_workers.py"
    script.write_text(SLEEPING_WORKERS)
    parent = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    worker_ids = [int(parent.stdout.readline()), int(parent.stdout.readline())]

    parent.send_signal(signal.SIGINT)

    assert parent.wait(timeout=30) != 0
    wait_for_end(worker_ids, seconds=10)
    assert not is_running(worker_ids[0])
    assert not is_running(worker_ids[1])


def wait_for_end(process_ids, seconds):
    """Wait until all of these processes have ended, at most so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(map(is_running, process_ids)):
        time.sleep(0.05)


def is_running(process_id):
    """Return whether a process runs; a zombie (state Z) has ended."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return False
    return fields[0] != "Z"
