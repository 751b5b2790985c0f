"""Errors of the machine, such as a full disk or too little memory, as one line for the user.

The line says what failed, how much there is, and what to do. `errors.run_main` prints it in place
of a traceback.
"""

import errno
import os
import resource
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime.streams import STDOUT

# Parts of the messages by which C++ libraries, the dynamic linker and CUDA report a lack of memory.
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
# How much of such a message is shown, in characters.
_MAX_MESSAGE_LENGTH = 150
# The most memory that the running stage needs, in GB: `meta.memory_gb` of the stage in dvc.yaml.
# The stage sets it (pipeline/stage_args.py); None in other programs.
needed_memory_gb: float | None = None


def describe_machine_error(error: BaseException) -> str | None:
    """Describe an error of the machine, such as a full disk or too little memory, in one line.

    Returns:
        The description, with what the user can do; None for an error of another kind.
    """
    if is_out_of_memory(error):
        message = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        return f"out of memory ({message[:_MAX_MESSAGE_LENGTH]}). {describe_memory()}"
    damaged_module = _damaged_module(error)
    if damaged_module is not None:
        return f"{damaged_module} is damaged, as by a full disk. Remove it, then run this again"
    if isinstance(error, FileNotFoundError) and error.errno is None:
        # The library safetensors raises this error without a number; its message names the file.
        return str(error)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno == errno.EBADF and not error.filename:
        # EBADF means that a file descriptor is closed. Our wrappers of the standard streams add a
        # name to errors: the caller has closed such a stream. Without a name, it is a bug.
        return None
    description = error.strerror or os.strerror(error.errno)
    if error.filename:
        description += f": {error.filename}"
    advice = ""
    with suppress(OSError):
        advice = _advice_for_system_error(error.errno, error.filename)
    return f"{description}. {advice}" if advice else description


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there is not enough memory, on the machine or on a GPU.

    Python raises MemoryError or an OSError for it. C++ libraries and CUDA raise other errors, which
    are recognized by parts of their messages, such as "out of memory".
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError | ImportError | SystemError):
        return any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def _damaged_module(error: BaseException) -> str | None:
    """Return the compiled module (.pyc) that Python could not read; None for other errors.

    When Python first imports a module, it writes such a file. If the disk is full, the file may be
    incomplete. From then on, each import fails in Python's module `marshal`, which reads the file.
    """
    if not isinstance(error, EOFError | TypeError | ValueError) or "marshal" not in str(error):
        return None
    trace = error.__traceback__
    while trace is not None:
        # The name of the file is in a local variable of the function of importlib that reads it.
        path = trace.tb_frame.f_locals.get("bytecode_path")
        if isinstance(path, str) and path.endswith(".pyc"):
            return path
        trace = trace.tb_next
    return None


def _advice_for_system_error(error_number: int, file_name: str | bytes | int | None) -> str:
    """Return what the user can do about an error of the operating system.

    There is advice if the disk is full or if too many files are open; otherwise the text is empty.

    Args:
        error_number: The number of the error, such as `errno.ENOSPC`.
        file_name: The `filename` of the OSError: a path, the name of standard output, a descriptor,
            or None.
    """
    if error_number == errno.ENOSPC:
        return _advice_for_full_disk(file_name)
    if error_number == errno.EMFILE:
        soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft_limit == hard_limit:
            return (
                f"The limit is {soft_limit} files, and this user may not raise it. "
                "Run fewer processes, or ask the administrator for more"
            )
        return f"The limit is {soft_limit} files. To raise it, run: ulimit -n {hard_limit}"
    return ""


def _advice_for_full_disk(file_name: str | bytes | int | None) -> str:
    """Return advice about a full disk: how much space is free, and in which folder to make room.

    Args:
        file_name: The `filename` of an OSError. If it is not a path, the advice is about the disk
            of the working folder.

    Returns:
        The advice; an empty text for a pipe or a device, which is on no disk.
    """
    if file_name == STDOUT:
        file_name = _file_of_standard_output()
        if not file_name:
            return ""
    path = Path(os.fsdecode(file_name) if isinstance(file_name, str | bytes) else ".").absolute()
    is_device = path.exists() and not path.is_file() and not path.is_dir()
    if is_device:
        return ""
    # The folder of a file that does not exist may not exist either.
    folder = path
    while not folder.is_dir():
        folder = folder.parent
    free = format_bytes(shutil.disk_usage(folder).free)
    return f"{folder} has {free} free. Make room there, then run this again"


def _file_of_standard_output() -> str:
    """Return the path of the file to which standard output is redirected, from a link in /proc.

    If standard output is a pipe or a device, the path is empty.
    """
    with suppress(OSError):
        path = Path(f"/proc/self/fd/{sys.stdout.fileno()}").readlink()
        return str(path) if path.is_file() else ""
    return ""


def describe_memory() -> str:
    """Say in a sentence or two how much memory the stage needs and how much this process can get.

    Finding this out needs a little memory, too. If even this little is not available, the sentence
    is "This process cannot get more memory".
    """
    try:
        description = _memory_of_machine()
    except (MemoryError, OSError):
        return "This process cannot get more memory"
    if needed_memory_gb:
        return f"dvc.yaml reserves {needed_memory_gb:g} GB for this stage. {description}"
    return description


def _memory_of_machine() -> str:
    """Return a sentence about the memory of this machine and the limits for this process.

    A process can have a limit of its own (`ulimit -v`), and its container or cluster job another.
    """
    # Imported here, because it is hardly ever needed and all stages import this module.
    import psutil

    memory = psutil.virtual_memory()
    total = format_bytes(memory.total)
    available = format_bytes(memory.available)
    description = f"This machine has {total} of memory ({available} free)"
    process_limit, _hard_limit = resource.getrlimit(resource.RLIMIT_AS)
    if process_limit != resource.RLIM_INFINITY:
        description += f", and this process may use {format_bytes(process_limit)} (ulimit -v)"
    # Without a limit, the file contains the word "max".
    with suppress(OSError, ValueError):
        group_limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        description += f", and this container or job may use {format_bytes(group_limit)}"
    return description


def format_bytes(count: float) -> str:
    """Return a number of bytes as MB or GB, such as `12.3 MB`."""
    if count < 1e9:
        return f"{count / 1e6:.3g} MB"
    return f"{count / 1e9:,.1f} GB"


def add_kill_reason(event: str) -> str:
    """Add the likely reason to a message that a process was killed (SIGKILL).

    When memory runs out, Linux kills a process and increases a counter (OOM, out of memory). If the
    counter has risen since this program started, this is the likely reason.

    Args:
        event: What happened, such as "a worker process was killed".

    Returns:
        The message, without a full stop at its end; only `event` if the counter has not risen.
    """
    if _oom_kills(_OOM_COUNTS) <= _OOM_KILLS_BEFORE:
        return event
    if _OOM_COUNTS == _MACHINE_COUNTS:
        # These are counts of the whole machine, so the process may be another user's.
        reason = "The kernel killed a process on this machine for lack of memory"
    else:
        reason = "The kernel killed it for lack of memory"
    return f"{event}. {reason}. {describe_memory()}"


def _oom_counts(membership: Path, groups: Path) -> Path:
    """Return the file in which Linux counts the processes that it has killed for lack of memory.

    The processes of a cluster job or container are in a control group, which has its own memory
    limit and its own file of counts. Without such a group, the file for the whole machine is
    returned.

    Args:
        membership: The file that names the control groups of this process.
        groups: The folder with the files of control groups (version 2).
    """
    with suppress(OSError, UnicodeError):
        for line in membership.read_text(encoding="utf-8").splitlines():
            # Control groups of version 2 begin the line with 0::; version 1 has no such counts.
            if line.startswith("0::/"):
                events = groups / line.removeprefix("0::/") / "memory.events"
                if events.is_file():
                    return events
    return _MACHINE_COUNTS


def _oom_kills(counts: Path) -> int:
    """Return how many processes Linux has killed for lack of memory (oom_kill).

    Args:
        counts: A file of counts, with lines such as `oom_kill 3`.
    """
    with suppress(OSError, ValueError):
        for line in counts.read_text(encoding="ascii").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


# The kernel's counts of the whole machine, also in a container.
_MACHINE_COUNTS = Path("/proc/vmstat")
_OOM_COUNTS = _oom_counts(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))
# The count when this program started.
_OOM_KILLS_BEFORE = _oom_kills(_OOM_COUNTS)
