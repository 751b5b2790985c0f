"""Errors of the machine, not of the code, in one line: what failed, how much there is, what to do.

Full disks, exhausted memory, files that are missing or forbidden.
"""

import errno
import os
import resource
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime.streams import STDOUT

# By which C++ libraries, the dynamic linker and CUDA report it, beside MemoryError and ENOMEM.
_OUT_OF_MEMORY = (
    "out of memory",
    "allocate memory",
    "ALLOC_FAILED",
    "bad_alloc",
    "could not create a primitive",
    "could not create a memory object",
    "failed to map segment",
    "can't start new thread",
)

# What the stage that runs needs at most, in GB: `meta.memory_gb` of dvc.yaml.
needed_memory_gb: float | None = None


def describe_machine_error(error: BaseException) -> str | None:
    """The error in one line; None if it is not one of the machine."""
    if is_out_of_memory(error):
        text = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        return f"out of memory ({text[:150]}): {describe_memory()}"
    if compiled := _damaged_module(error):
        return f"{compiled} is damaged, as by a full disk: remove it, then run this again"
    if isinstance(error, FileNotFoundError) and error.errno is None:  # of safetensors
        return str(error)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno == errno.EBADF and not error.filename:  # not of a stream of the caller
        return None
    parts = [error.strerror or os.strerror(error.errno or 0), error.filename]
    with suppress(OSError):
        parts.append(_advice(error.errno, error.filename))
    return ": ".join(str(part) for part in parts if part)


def _damaged_module(error: BaseException) -> str | None:
    """The compiled module (.pyc) that Python could not read; None for other errors.

    Python writes these files without checking that they are whole, and reads a cut one for ever.
    """
    if not isinstance(error, EOFError | TypeError | ValueError) or "marshal" not in str(error):
        return None
    trace = error.__traceback__
    while trace is not None:
        # of importlib, which reads the file
        path = trace.tb_frame.f_locals.get("bytecode_path")
        if isinstance(path, str) and path.endswith(".pyc"):
            return path
        trace = trace.tb_next
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory could not be allocated, of the machine or of a GPU."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError | ImportError | SystemError):
        return any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def explain_kill() -> str:
    """What to say of a process that SIGKILL ended: lack of memory, where the kernel has counted it.

    Anyone may have sent the signal, so that without evidence nothing is said. The count of the
    whole machine includes the processes of other jobs and users.
    """
    if _oom_kills(_OOM_COUNTS) <= _OOM_KILLS_BEFORE:
        return ""
    if _OOM_COUNTS == _MACHINE_COUNTS:
        return (
            f"; the kernel killed a process on this machine for lack of memory: {describe_memory()}"
        )
    return f", by the kernel for lack of memory: {describe_memory()}"


def _oom_counts(membership: Path, groups: Path) -> Path:
    """The file that counts OOM kills: of the control group of this process, or of the machine.

    Args:
        membership: The file that names the control groups of this process.
        groups: The folder in which control groups (version 2) are mounted.
    """
    with suppress(OSError, UnicodeError):
        for line in membership.read_text(encoding="utf-8").splitlines():
            # of version 2; the others are of version 1, which has no such file
            if line.startswith("0::/"):
                events = groups / line.removeprefix("0::/") / "memory.events"
                if events.is_file():
                    return events
    return _MACHINE_COUNTS


def _oom_kills(counts: Path) -> int:
    """How many processes the kernel has killed for lack of memory, by a file of counts."""
    with suppress(OSError, ValueError):
        for line in counts.read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


# The kernel's counts of the whole machine, also in a container.
_MACHINE_COUNTS = Path("/proc/vmstat")
_OOM_COUNTS = _oom_counts(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
_OOM_KILLS_BEFORE = _oom_kills(_OOM_COUNTS)


def describe_memory() -> str:
    """The memory that the stage needs and that there is, for a message."""
    try:
        import psutil  # imported here: all stages import this module

        machine = psutil.virtual_memory()
        total, available = format_bytes(machine.total), format_bytes(machine.available)
        said = f"this machine has {total}, {available} of it free"
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            said += f", and this process may use {format_bytes(limit)} (ulimit -v)"
        with suppress(OSError, ValueError):  # "max" without a limit
            limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
            said += f", and this container or job may use {format_bytes(limit)}"
        needs = (
            f"dvc.yaml counts on {needed_memory_gb:g} GB for this stage; "
            if needed_memory_gb
            else ""
        )
        return f"{needs}{said}"
    except (MemoryError, OSError):
        return "this process can have no more"


def _advice(number: int | None, name: object) -> str:
    """What there is where the file `name` is, and what to do about error `number`."""
    if number == errno.ENOSPC:
        if name == STDOUT:
            name = _file_of_output()
            if not name:
                return ""
        path = Path(os.fsdecode(name) if isinstance(name, str | bytes) else ".").absolute()
        if path.exists() and not (path.is_file() or path.is_dir()):
            return ""  # a device
        folder = next(each for each in (path, *path.parents) if each.is_dir())
        free = format_bytes(shutil.disk_usage(folder).free)
        return f"{free} free in {folder}: make room there, then run this again"
    if number == errno.EMFILE:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return f"this process may open {soft}: ulimit -n {hard} allows the most"
    return ""


def _file_of_output() -> str:
    """The file that standard output is written to; empty for a pipe or a device."""
    with suppress(OSError):
        path = Path(f"/proc/self/fd/{sys.stdout.fileno()}").readlink()
        return str(path) if path.is_file() else ""
    return ""


def format_bytes(count: float) -> str:
    """Bytes as MB or GB."""
    return f"{count / 1e6:.3g} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"
