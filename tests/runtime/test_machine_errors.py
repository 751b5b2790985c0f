"""Errors of the machine in one line."""

import errno
import importlib
import os
import py_compile
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bleuprint.runtime import machine_errors
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.streams import STDOUT


def message_after_name(number, file=None):
    """Return the line that describes an OSError, after the system's name for the error.

    Args:
        number: The number of the error, such as errno.ENOSPC.
        file: The file that the error names, or None.
    """
    filename = None if file is None else str(file)
    line = describe_machine_error(OSError(number, os.strerror(number), filename))
    assert line is not None
    assert "\n" not in line
    name = os.strerror(number)
    assert line.startswith(name)
    return line.removeprefix(name).lstrip(":. ")


@pytest.mark.parametrize("names_file", [True, False])
def test_a_full_disk_names_file_folder_and_free_space(tmp_path, monkeypatch, names_file):
    """Without a file, the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    free_gb = shutil.disk_usage(tmp_path).free / 1e9
    file = tmp_path / "missing" / "file" if names_file else None
    prefix = f"{tmp_path}/missing/file. " if names_file else ""

    message = message_after_name(errno.ENOSPC, file)

    match = re.fullmatch(
        rf"{prefix}{tmp_path} has ([\d,.]+) GB free\. Make room there, .*", message
    )
    assert match
    reported_gb = float(match[1].replace(",", ""))
    assert abs(reported_gb - free_gb) < 5  # Other programs write meanwhile.


@pytest.mark.parametrize(
    ("limits", "advice"),
    [
        pytest.param(
            (1024, 4096),
            "The limit is 1024 files. To raise it, run: ulimit -n 4096",
            id="may be raised",
        ),
        pytest.param(
            (4096, 4096),
            "The limit is 4096 files, and this user may not raise it. "
            "Run fewer processes, or ask the administrator for more",
            id="highest",
        ),
    ],
)
def test_too_many_open_files_names_the_limit_and_how_to_raise_it(
    tmp_path, monkeypatch, limits, advice
):
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)

    message = message_after_name(errno.EMFILE, tmp_path / "x")

    assert message == f"{tmp_path}/x. {advice}"


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOENT])
def test_other_errors_name_the_file_alone(tmp_path, number):
    """A quota, a broken disk, a read-only file system, a missing file: no advice is given."""
    assert message_after_name(number, tmp_path / "file") == f"{tmp_path}/file"


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(MemoryError(), id="Python"),
        pytest.param(OSError(errno.ENOMEM, "Cannot allocate memory"), id="system call"),
        pytest.param(RuntimeError("could not create a primitive"), id="oneDNN"),
        pytest.param(RuntimeError("DefaultCPUAllocator: can't allocate memory"), id="torch"),
        pytest.param(RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"), id="CUDA"),
        pytest.param(RuntimeError("std::bad_alloc"), id="C++"),
        pytest.param(
            ImportError("libtorch_cpu.so: failed to map segment from shared object"),
            id="loader of libraries",
        ),
    ],
)
def test_exhausted_memory_says_what_is_needed_and_what_the_machine_has(error, monkeypatch):
    """Python, torch, oneDNN, CUDA, C++ and the loader of libraries all say it differently."""
    monkeypatch.setattr(machine_errors, "needed_memory_gb", 32)

    message = describe_machine_error(error)

    assert message is not None
    assert message.startswith(f"out of memory ({type(error).__name__}")
    assert "dvc.yaml reserves 32 GB for this stage. This machine has " in message


@pytest.mark.parametrize(
    "error",
    [RuntimeError("bug"), ValueError("out of memory"), OSError("bug"), KeyError("x")],
    ids=["RuntimeError", "ValueError", "OSError without a number", "KeyError"],
)
def test_bugs_are_not_errors_of_the_machine(error):
    """None means that the error is printed with its traceback."""
    assert describe_machine_error(error) is None


def test_exhausted_memory_before_main_is_one_line():
    """The process may use 2 GB and asks for 3 GB while its modules are still loaded."""
    program = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
import bleuprint.runtime.errors
bytes(3 * 10**9)
"""

    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert process.returncode == 1
    assert process.stderr.count("\n") == 1
    assert process.stderr.startswith(
        "bleuprint: error: out of memory (MemoryError). This machine has"
    )


def test_a_memory_limit_of_the_process_is_described(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_500_000_000, -1))

    assert ", and this process may use 2.5 GB (ulimit -v)" in machine_errors.describe_memory()


def test_memory_is_described_even_if_measuring_it_needs_too_much(monkeypatch):
    def run_out_of_memory():
        raise MemoryError

    monkeypatch.setattr(psutil, "virtual_memory", run_out_of_memory)

    assert machine_errors.describe_memory() == "This process cannot get more memory"


def test_without_a_known_need_only_the_memory_of_the_machine_is_described():
    """Only a stage in dvc.yaml says how much memory it needs."""
    assert machine_errors.describe_memory().startswith("This machine has ")


def test_the_memory_that_a_stage_needs_is_described(monkeypatch):
    monkeypatch.setattr(machine_errors, "needed_memory_gb", 2.5)

    description = machine_errors.describe_memory()

    assert description.startswith("dvc.yaml reserves 2.5 GB for this stage. This machine has ")


def test_a_full_disk_under_a_redirected_output_names_the_folder_of_the_file(tmp_path, monkeypatch):
    """As in `bleuprint translate > output`; an error of standard output names no file."""
    monkeypatch.setattr(
        machine_errors, "_file_of_standard_output", lambda: str(tmp_path / "output")
    )

    message = message_after_name(errno.ENOSPC, STDOUT)

    assert re.search(rf"{tmp_path} has .* free\. Make room there", message)
    assert message != STDOUT


def test_a_full_pipe_or_device_names_standard_output_alone(monkeypatch):
    """A pipe or device has no disk."""
    monkeypatch.setattr(machine_errors, "_file_of_standard_output", lambda: "")

    assert message_after_name(errno.ENOSPC, STDOUT) == STDOUT


def test_a_closed_descriptor_without_a_name_is_a_bug():
    """Code of ours has used a file after closing it: None means that a traceback is printed."""
    error = OSError(errno.EBADF, os.strerror(errno.EBADF))
    assert describe_machine_error(error) is None


def test_a_closed_standard_output_is_an_error_of_the_machine():
    """The user has closed it, as by `>&-`, so the message is one line without a traceback."""
    assert message_after_name(errno.EBADF, STDOUT) == STDOUT


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1e-06 MB"), (12_345_678, "12.3 MB"), (999e6, "999 MB"), (1e9, "1.0 GB")],
)
def test_sizes_have_three_digits_in_megabytes_and_one_decimal_in_gigabytes(count, text):
    assert machine_errors.format_bytes(count) == text


@pytest.fixture
def membership(tmp_path):
    """The file that names the control groups of a process, on a machine with both versions."""
    path = tmp_path / "cgroup"
    path.write_text("4:memory:/old\n0::/user.slice/job-7.scope\n")
    return path


def replace_oom_counts(membership, groups, monkeypatch):
    """Count OOM kills as if this process had just started; return the file that counts them.

    Args:
        membership: The file that names the control groups of the process.
        groups: The folder of control groups.
        monkeypatch: Replaces the counts.
    """
    counts = machine_errors._oom_counts(membership, groups)
    monkeypatch.setattr(machine_errors, "_OOM_COUNTS", counts)
    monkeypatch.setattr(machine_errors, "_OOM_KILLS_BEFORE", machine_errors._oom_kills(counts))
    return counts


def test_an_oom_kill_is_this_jobs_if_its_own_control_group_counts_it(
    tmp_path, membership, monkeypatch
):
    """The kernel counts kills for lack of memory (OOM) per machine and per control group."""
    machine_counts = tmp_path / "vmstat"
    machine_counts.write_text("nr_free_pages 7\noom_kill 3\n")
    monkeypatch.setattr(machine_errors, "_MACHINE_COUNTS", machine_counts)
    group_counts = tmp_path / "groups" / "user.slice" / "job-7.scope" / "memory.events"
    group_counts.parent.mkdir(parents=True)
    group_counts.write_text("low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert replace_oom_counts(membership, tmp_path / "groups", monkeypatch) == group_counts

    machine_counts.write_text("nr_free_pages 7\noom_kill 4\n")  # the process of another job
    assert machine_errors.add_kill_reason("killed") == "killed"

    group_counts.write_text("low 0\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert machine_errors.add_kill_reason("killed").startswith(
        "killed. The kernel killed it for lack of memory. This machine has "
    )

    group_counts.unlink()
    assert machine_errors.add_kill_reason("killed") == "killed"


def test_an_oom_kill_that_only_the_machine_counts_may_be_another_jobs(
    tmp_path, membership, monkeypatch
):
    """Without a control group, the count of the whole machine is all that is known."""
    machine_counts = tmp_path / "vmstat"
    machine_counts.write_text("nr_free_pages 7\noom_kill 3\n")
    monkeypatch.setattr(machine_errors, "_MACHINE_COUNTS", machine_counts)
    assert replace_oom_counts(membership, tmp_path / "groups", monkeypatch) == machine_counts
    assert machine_errors.add_kill_reason("killed") == "killed"

    machine_counts.write_text("nr_free_pages 7\noom_kill 4\n")
    assert machine_errors.add_kill_reason("killed").startswith(
        "killed. The kernel killed a process on this machine for lack of memory. This machine has "
    )

    machine_counts.unlink()
    assert machine_errors.add_kill_reason("killed") == "killed"


@pytest.mark.parametrize("size", [17, 40, "half"])
def test_a_truncated_compiled_module_is_named_and_can_be_removed(tmp_path, monkeypatch, size):
    """A full disk truncates .pyc files, which Python does not write again by itself."""
    source = tmp_path / "cut_module.py"
    source.write_text("value = [1, 2, 3]\n\n\ndef add(a, b):\n    return a + b\n")
    compiled = Path(py_compile.compile(str(source)))
    content = compiled.read_bytes()
    kept_bytes = len(content) // 2 if size == "half" else size
    compiled.write_bytes(content[:kept_bytes])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cut_module", raising=False)

    with pytest.raises((EOFError, ValueError, TypeError)) as raised:
        importlib.import_module("cut_module")

    expected = f"{compiled} is damaged, as by a full disk. Remove it, then run this again"
    assert describe_machine_error(raised.value) == expected
    compiled.unlink()
    assert importlib.import_module("cut_module").add(1, 2) == 3
    monkeypatch.delitem(sys.modules, "cut_module")


def test_an_error_about_marshal_outside_an_import_is_a_bug():
    """Python's errors about truncated .pyc files contain the word marshal."""
    assert describe_machine_error(ValueError("marshal")) is None
