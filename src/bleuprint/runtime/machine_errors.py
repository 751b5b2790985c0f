"""Errors of the machine, not of the code, in one line: what failed, how much there is, what to do.

Full disks, exhausted memory, limits of the process, files that are missing or forbidden.
"""

import errno
import os
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

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
needed_gb: float | None = None

# Freed for a message about memory, which takes some.
_reserve = bytearray(1 << 20)


def describe(error: BaseException) -> str | None:
    """The error in one line; None if it is not one of the machine."""
    if is_out_of_memory(error):
        return f"out of memory ({_summary(error)}): {memory()}"
    # of copytree: (source, copy, text of an OSError) of each file that it could not copy
    if isinstance(error, shutil.Error) and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        error = OSError(int(found[1]), os.strerror(int(found[1])), error.args[0][0][1])
    if isinstance(error, FileNotFoundError) and error.errno is None:  # of safetensors
        return str(error)
    if not isinstance(error, OSError) or error.errno in (None, errno.EBADF):
        return None
    assert error.errno is not None
    line = error.strerror or os.strerror(error.errno)
    if error.filename is not None:
        line += f": {error.filename}"
    with suppress(OSError):
        if advice := _advice(error.errno, _folder_of(error.filename)):
            line += f": {advice}"
    return line


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory could not be allocated, of the machine or of a GPU."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError | ImportError | SystemError):
        return any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def memory() -> str:
    """The memory that the stage needs and that there is, for a message."""
    _reserve.clear()
    try:
        needs = f"dvc.yaml counts on {needed_gb:g} GB for this stage; " if needed_gb else ""
        return f"{needs}{', '.join(_memory_there())}"
    except (MemoryError, OSError):
        return "this process can have no more"


def _memory_there() -> Iterator[str]:
    machine = psutil.virtual_memory()
    yield f"this machine has {_size(machine.total)}, {_size(machine.available)} of it free"
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield f"this process may use {_size(limit)} (ulimit -v)"
    # version 2 of cgroups, and version 1
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            limit = int(Path("/sys/fs/cgroup", name).read_text())
            if limit < machine.total:
                yield f"this container or job may use {_size(limit)}"


def _advice(number: int, folder: Path) -> str:
    """What there is in `folder`, and what to do about error `number`."""
    if number == errno.ENOSPC:
        there = os.statvfs(folder)
        free = _size(there.f_bavail * there.f_frsize)
        if there.f_files and not there.f_favail:
            free += " but no further file"
        return f"{free} free in {folder.absolute()}: make room there, then run this again"
    if number == errno.EDQUOT:
        return f"make room in {folder.absolute()}, or have the quota raised, then run this again"
    if number == errno.EMFILE:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        more = f": ulimit -n {hard}, then run this again" if hard > soft else ""
        return f"this process may open {soft}{more}"
    if number == errno.EFBIG:
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        unlimited = limit == resource.RLIM_INFINITY
        which = "" if unlimited else f"this process may write {_size(limit)} (ulimit -f)"
        return which or f"the file system of {folder.absolute()} allows no larger ones"
    return {
        errno.EIO: "the disk or the network failed; dmesg may say more",
        errno.ESTALE: "a network file system has lost it: run this again",
        errno.EAGAIN: "no further process can be started (ulimit -u)",
        errno.ENOLCK: f"the file system of {folder.absolute()} has no locks",
    }.get(number, "")


def _folder_of(name: object) -> Path:
    """The folder of a file, as far as it exists; the current one without a name."""
    path = Path(os.fsdecode(name)) if isinstance(name, str | bytes) else Path()
    return next((each for each in (path, *path.parents) if each.is_dir()), Path())


def _summary(error: BaseException) -> str:
    """The kind of an error and the beginning of its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__


def _size(count: float) -> str:
    """Bytes as kB, MB or GB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
