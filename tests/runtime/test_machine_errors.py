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


def of(number, file=None):
    """The line of an OSError, after what the system calls it."""
    line = describe_machine_error(OSError(number, os.strerror(number), file and str(file)))
    assert line is not None and "\n" not in line
    said, _, rest = line.partition(": ")
    assert said == os.strerror(number)
    return rest


def test_a_full_disk_names_file_folder_and_free_space(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    free = shutil.disk_usage(tmp_path).free / 1e9
    for file, named in ((tmp_path / "missing" / "file", f"{tmp_path}/missing/file: "), (None, "")):
        said = re.fullmatch(
            rf"{named}([\d,.]+) GB free in {tmp_path}: make room there, .*", of(errno.ENOSPC, file)
        )
        assert said and abs(float(said[1].replace(",", "")) - free) < 5


def test_limits_are_named(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = of(errno.EMFILE, tmp_path / "x")
    assert said == f"{tmp_path}/x: this process may open {soft}: ulimit -n {hard} allows the most"


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOENT])
def test_others_name_the_file(tmp_path, number):
    assert of(number, tmp_path / "file") == f"{tmp_path}/file"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("could not create a primitive"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"),
        RuntimeError("std::bad_alloc"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_exhausted_memory_says_what_is_needed_and_what_there_is(error, monkeypatch):
    monkeypatch.setattr(machine_errors, "needed_memory_gb", 32)
    said = describe_machine_error(error)
    assert said is not None
    assert said.startswith(f"out of memory ({type(error).__name__}")
    assert "dvc.yaml counts on 32 GB for this stage; this machine has " in said


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), ValueError("out of memory"), OSError("bug"), KeyError("x")]
)
def test_bugs_are_not_errors_of_the_machine(error):
    assert describe_machine_error(error) is None


def test_an_error_before_main_is_one_line_too():
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))"
    program = f"{limit}\nimport bleuprint.runtime.errors\nbytes(3 * 10**9)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("bleuprint: error: out of memory (MemoryError): this machine has")


def test_memory_names_the_limit_of_the_process(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_500_000_000, -1))
    assert ", and this process may use 2.5 GB (ulimit -v)" in machine_errors.describe_memory()


def test_memory_that_cannot_be_asked_for_is_exhausted(monkeypatch):
    def exhausted():
        raise MemoryError

    monkeypatch.setattr(psutil, "virtual_memory", exhausted)
    assert machine_errors.describe_memory() == "this process can have no more"


def test_what_the_stage_needs_is_named_where_it_is_known(monkeypatch):
    assert machine_errors.describe_memory().startswith("this machine has ")
    monkeypatch.setattr(machine_errors, "needed_memory_gb", 2.5)
    said = "dvc.yaml counts on 2.5 GB for this stage; this machine has "
    assert machine_errors.describe_memory().startswith(said)


@pytest.mark.parametrize("is_file", [True, False])
def test_a_full_disk_behind_standard_output_is_that_of_its_file(tmp_path, monkeypatch, is_file):
    """A pipe or device has no disk."""
    file = str(tmp_path / "output") if is_file else ""
    monkeypatch.setattr(machine_errors, "_file_of_output", lambda: file)
    said = of(errno.ENOSPC, STDOUT)
    assert (f"free in {tmp_path}: make room there" in said) == is_file
    assert (said == STDOUT) == (not is_file)


def test_a_closed_descriptor_without_a_name_is_a_bug():
    closed = OSError(errno.EBADF, os.strerror(errno.EBADF))
    assert describe_machine_error(closed) is None
    assert of(errno.EBADF, STDOUT) == STDOUT


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1e-06 MB"), (12_345_678, "12.3 MB"), (999e6, "999 MB"), (1e9, "1.0 GB")],
)
def test_sizes(count, text):
    assert machine_errors.format_bytes(count) == text


@pytest.fixture
def membership(tmp_path):
    """The file that names the control groups of a process, on a machine with both versions."""
    path = tmp_path / "cgroup"
    path.write_text("4:memory:/old\n0::/user.slice/job-7.scope\n")
    return path


def oom_counts(membership, groups, monkeypatch):
    """Have the counts of OOM kills read as at the start of a process; return their file."""
    counts = machine_errors._oom_counts(membership, groups)
    monkeypatch.setattr(machine_errors, "_OOM_COUNTS", counts)
    monkeypatch.setattr(machine_errors, "_OOM_KILLS_BEFORE", machine_errors._oom_kills(counts))
    return counts


def test_an_oom_kill_is_this_jobs_if_its_own_control_group_counts_it(
    tmp_path, membership, monkeypatch
):
    (machine := tmp_path / "vmstat").write_text("nr_free_pages 7\noom_kill 3\n")
    monkeypatch.setattr(machine_errors, "_MACHINE_COUNTS", machine)
    own = tmp_path / "groups" / "user.slice" / "job-7.scope" / "memory.events"
    own.parent.mkdir(parents=True)
    own.write_text("low 0\noom 1\noom_kill 1\noom_group_kill 0\n")
    assert oom_counts(membership, tmp_path / "groups", monkeypatch) == own
    machine.write_text("nr_free_pages 7\noom_kill 4\n")  # the process of another job
    assert machine_errors.explain_kill() == ""
    own.write_text("low 0\noom 2\noom_kill 2\noom_group_kill 0\n")
    assert machine_errors.explain_kill().startswith(
        ", by the kernel for lack of memory: this machine has "
    )
    own.unlink()
    assert machine_errors.explain_kill() == ""


def test_an_oom_kill_that_only_the_machine_counts_may_be_another_jobs(
    tmp_path, membership, monkeypatch
):
    (machine := tmp_path / "vmstat").write_text("nr_free_pages 7\noom_kill 3\n")
    monkeypatch.setattr(machine_errors, "_MACHINE_COUNTS", machine)
    assert oom_counts(membership, tmp_path / "groups", monkeypatch) == machine
    assert machine_errors.explain_kill() == ""
    machine.write_text("nr_free_pages 7\noom_kill 4\n")
    assert machine_errors.explain_kill().startswith(
        "; the kernel killed a process on this machine for lack of memory: this machine has "
    )
    machine.unlink()
    assert machine_errors.explain_kill() == ""


@pytest.mark.parametrize("size", [17, 40, "half"])
def test_a_compiled_module_that_was_cut_is_named(tmp_path, monkeypatch, size):
    """Python reads it for ever, as written on a full disk."""
    (tmp_path / "cut_module.py").write_text(
        "value = [1, 2, 3]\n\n\ndef add(a, b):\n    return a + b\n"
    )
    compiled = Path(py_compile.compile(str(tmp_path / "cut_module.py")))
    content = compiled.read_bytes()
    compiled.write_bytes(content[: len(content) // 2 if size == "half" else size])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cut_module", raising=False)
    with pytest.raises((EOFError, ValueError, TypeError)) as raised:
        importlib.import_module("cut_module")
    expected = f"{compiled} is damaged, as by a full disk: remove it, then run this again"
    assert describe_machine_error(raised.value) == expected
    compiled.unlink()
    assert importlib.import_module("cut_module").add(1, 2) == 3
    monkeypatch.delitem(sys.modules, "cut_module")


def test_other_errors_with_that_word_are_bugs():
    assert describe_machine_error(ValueError("marshal")) is None
