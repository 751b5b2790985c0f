"""The GPUs of a machine are shared out by locks: made-up names of GPUs, and real processes."""

import json
import os
import signal
import subprocess
import sys
import uuid

import pytest

from bleuprint.runtime import gpu_locks, visible_gpus
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.gpu_locks import hold_gpus
from bleuprint.runtime.locks import flock_holder
from requirements import PRIVILEGES, needs
from root import ROOT

# Holds GPUs, prints their names, and runs until its standard input is closed.
HOLDER = """\
import sys, json, os
from bleuprint.runtime.errors import run_main
from bleuprint.runtime.gpu_locks import hold_gpus
def main():
    with hold_gpus() as names:
        print(json.dumps([names, os.environ["CUDA_VISIBLE_DEVICES"]]), flush=True)
        sys.stdin.read()
run_main(main)
"""


@pytest.fixture
def gpu_names(monkeypatch):
    """Return the names of three GPUs that no other test uses; only they are visible."""
    identity = uuid.uuid4().hex
    names = [f"GPU-{identity}-{number}" for number in range(3)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(names))
    monkeypatch.delenv("BLEUPRINT_GPUS", raising=False)
    lock_files = [gpu_locks._lock_file(name) for name in names]
    yield names
    for lock_file in lock_files:
        lock_file.unlink(missing_ok=True)


@pytest.fixture
def start_holder():
    """Return a function that starts a process that holds GPUs; all are ended after the test."""
    processes = []

    def start(**variables):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


def held_by(process):
    """Wait until a holder has its GPUs, and return their names."""
    names, visible = json.loads(process.stdout.readline())
    assert visible == ",".join(names)
    return names


def test_a_process_takes_all_free_gpus_and_sees_only_these(gpu_names):
    with hold_gpus() as names:
        assert names == gpu_names
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(gpu_names)


def test_after_the_block_the_environment_is_as_before_and_the_gpus_are_free(gpu_names):
    with hold_gpus(max_gpus=1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == gpu_names[0]

    assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(gpu_names)
    with hold_gpus() as names:
        assert names == gpu_names


@pytest.mark.parametrize(
    ("max_gpus", "variable", "count"),
    [
        pytest.param(None, "2", 2, id="the runner allows two"),
        pytest.param(1, "2", 1, id="the stage uses one of two allowed"),
        pytest.param(2, "1", 1, id="the runner allows one of two"),
        pytest.param(9, "", 3, id="more than there are"),
    ],
)
def test_a_stage_takes_no_more_gpus_than_it_uses_or_is_allowed(
    gpu_names, monkeypatch, max_gpus, variable, count
):
    monkeypatch.setenv("BLEUPRINT_GPUS", variable)

    with hold_gpus(max_gpus) as names:
        assert names == gpu_names[:count]


def test_two_processes_never_hold_the_same_gpu(gpu_names, start_holder):
    """Each is allowed two of three GPUs; the second one gets the one that is left."""
    first = held_by(start_holder(BLEUPRINT_GPUS="2"))
    second = held_by(start_holder(BLEUPRINT_GPUS="2"))

    assert first == gpu_names[:2]
    assert second == gpu_names[2:]


def test_a_kill_frees_the_gpus(gpu_names, start_holder):
    """SIGKILL leaves a process no time to release anything: the kernel does."""
    holder = start_holder()
    assert held_by(holder) == gpu_names

    holder.send_signal(signal.SIGKILL)
    holder.wait(timeout=60)

    with hold_gpus() as names:
        assert names == gpu_names


def test_a_process_without_a_free_gpu_names_the_holder_and_waits_for_it(gpu_names, start_holder):
    holder = start_holder()
    assert held_by(holder) == gpu_names

    waiting = start_holder()
    note = waiting.stderr.readline()
    holder.stdin.close()  # The holder ends.

    assert note == (
        "bleuprint: note: waiting for a GPU: other runs of bleuprint hold all of the 3 GPUs "
        f"(process {holder.pid}). Ctrl-C stops waiting\n"
    )
    assert held_by(waiting) != []


def test_ctrl_c_ends_a_process_that_waits_for_a_gpu(gpu_names, start_holder):
    holder = start_holder()
    assert held_by(holder) == gpu_names
    waiting = start_holder()
    waiting.stderr.readline()

    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=60)

    assert waiting.returncode == 128 + signal.SIGINT
    assert "Traceback" not in errors


@pytest.mark.parametrize("setting", ["", "-1", "-1,0"])
def test_without_a_visible_gpu_nothing_is_held_and_the_setting_stays(monkeypatch, setting):
    """CUDA reads the list up to the first entry that names no GPU."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)

    with hold_gpus() as names:
        assert names == []
        assert os.environ["CUDA_VISIBLE_DEVICES"] == setting


@pytest.mark.parametrize("setting", ["1", "GPU-5f1", "GPU-5f1c"])
def test_two_people_who_name_a_gpu_differently_lock_the_same_gpu(monkeypatch, setting):
    """CUDA takes the number of a GPU, its UUID, or the first digits of the UUID."""
    identity = uuid.uuid4().hex
    uuids = [f"GPU-8932-{identity}", f"GPU-5f1c-{identity}"]
    monkeypatch.setattr(visible_gpus, "_driver_uuids", lambda: uuids)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)

    with hold_gpus() as names:
        lock_file = gpu_locks._lock_file(uuids[1])
        assert names == [uuids[1]]
        assert flock_holder(lock_file) == os.getpid()
    lock_file.unlink()


def test_of_several_parts_of_a_gpu_a_process_takes_one(monkeypatch, start_holder):
    """CUDA shows a process only one part (MIG), so another process can take the next one."""
    identity = uuid.uuid4().hex
    parts = [f"MIG-{identity}-{number}" for number in range(2)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(parts))

    first = held_by(start_holder())
    second = held_by(start_holder())

    assert [*first, *second] == parts
    for part in parts:
        gpu_locks._lock_file(part).unlink(missing_ok=True)


@needs(PRIVILEGES, os.getuid() == 0)
def test_another_user_can_lock_a_gpu_whose_file_we_have_created(gpu_names):
    """The folder is like /tmp, and Linux lets nobody re-create another user's file there."""
    nobody = 65534
    # With this mask, the files of a careful user are readable by nobody else.
    usual_mask = os.umask(0o077)
    try:
        with hold_gpus():
            pass
    finally:
        os.umask(usual_mask)

    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    # Another user cannot read our packages, so they are imported first.
    code = HOLDER.replace("run_main(main)", f"import pynvml; os.setuid({nobody}); run_main(main)")
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert json.loads(result.stdout)[0] == gpu_names, result.stderr


def test_a_folder_of_locks_that_cannot_be_used_is_an_error_with_advice(
    gpu_names, monkeypatch, tmp_path
):
    """A file is where the folder should be."""
    blocked = tmp_path / "gpus"
    blocked.touch()
    monkeypatch.setattr(gpu_locks, "_LOCK_FOLDER", blocked)

    expected = rf"{gpu_names[0]}\.lock: cannot lock a GPU: Not a directory\. .* chmod 1777"
    with pytest.raises(UserError, match=expected), hold_gpus():
        pass
