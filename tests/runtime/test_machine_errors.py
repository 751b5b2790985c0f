"""Errors of the machine in one line."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.runtime import machine_errors
from bleuprint.runtime.machine_errors import describe


def of(number: int, file: "Path | None" = None) -> str:
    """The line of an OSError, after what the system calls it."""
    error = OSError(number, os.strerror(number), str(file) if file else None)
    line = describe(error)
    assert line is not None and "\n" not in line
    assert line.startswith(os.strerror(number)) or "memory" in line
    return line.partition(": ")[2]


def test_a_full_disk_names_file_folder_and_free_space(tmp_path: Path) -> None:
    said = of(errno.ENOSPC, tmp_path / "missing" / "file")
    free = shutil.disk_usage(tmp_path).free / 1e9
    file, number, rest = said.partition(" GB")[0].rpartition(" ")
    assert file == f"{tmp_path}/missing/file:"
    assert abs(float(rest.replace(",", "")) - free) < 5 and number
    assert said.endswith(f" GB free in {tmp_path}: make room there, then run this again")


def test_a_folder_that_cannot_be_copied_names_the_file(tmp_path: Path) -> None:
    def full(source: str, target: str) -> None:  # noqa: ARG001
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    with pytest.raises(shutil.Error) as raised:
        shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=full)
    said = describe(raised.value)
    assert said is not None
    assert said.startswith(f"No space left on device: {tmp_path}/b/file: ")


def test_without_a_file_it_is_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f" free in {tmp_path}: make room" in of(errno.ENOSPC)


def test_limits_are_named(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        said = of(errno.EMFILE, tmp_path / "x")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said == f"{tmp_path}/x: this process may open {soft - 1}: ulimit -n {hard}, then run" + (
        " this again" if hard > soft - 1 else ""
    )


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "allows no larger ones"),
        (errno.EIO, "dmesg"),
        (errno.ESTALE, "run this again"),
        (errno.ENOLCK, "has no locks"),
        (errno.EROFS, "file"),
        (errno.ENOENT, "file"),
    ],
)
def test_others_name_the_file_and_some_advice(tmp_path: Path, number: int, advice: str) -> None:
    said = of(number, tmp_path / "file")
    assert said.startswith(f"{tmp_path}/file")
    assert advice in said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("could not create a primitive"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
        ),
        RuntimeError("CUDA out of memory. Tried to allocate 20 MiB"),
        RuntimeError("std::bad_alloc"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_exhausted_memory_says_what_is_needed_and_what_there_is(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_errors, "needed_gb", 32)
    said = describe(error)
    assert said is not None
    assert said.startswith(f"out of memory ({type(error).__name__}")
    assert "dvc.yaml counts on 32 GB for this stage; this machine has " in said


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), ValueError("out of memory"), OSError("bug"), KeyError("x")]
)
def test_bugs_are_not_errors_of_the_machine(error: Exception) -> None:
    assert describe(error) is None


def test_a_limit_of_the_process_is_named_at_an_error_before_main() -> None:
    program = """
import resource
import bleuprint.runtime.errors
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
bytes(3 * 10**9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("bleuprint: error: out of memory (MemoryError): this machine has")
    assert "this process may use 2.0 GB (ulimit -v)" in done.stderr
