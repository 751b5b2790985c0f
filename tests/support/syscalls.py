"""Faults of the system at chosen operations on files: errors, SIGKILL.

A forked process asks the kernel, by seccomp's user notification (seccomp_unotify(2)), to hold each
of its system calls on files until this process has decided about it. So all writers are covered,
whatever their language, and those of the processes that it starts; nothing is compiled or patched.
"""

import array
import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
# Constants of Linux on x86-64: numbers of system calls and requests.
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP = 317
_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_FILTER_FLAG_NEW_LISTENER = 8
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
# The folder that a path is relative to: the current one.
_CURRENT_FOLDER = -100
# The layouts of struct seccomp_notif and struct seccomp_notif_resp.
_NOTIFICATION, _ANSWER = "QIIiIQ6Q", "QqiI"

# The calls whose file is a descriptor: the number of the call, and the position of the descriptor.
_DESCRIPTOR = {
    "read": (0, 0),
    "pread64": (17, 0),
    "write": (1, 0),
    "pwrite64": (18, 0),
    "writev": (20, 0),
    "fsync": (74, 0),
    "fdatasync": (75, 0),
    "ftruncate": (77, 0),
    "fallocate": (285, 0),
    "flock": (73, 0),
    "getdents64": (217, 0),
    "sendfile": (40, 0),
    "copy_file_range": (326, 2),
}
# The calls whose file is a path: the number of the call, the position of the folder to which the
# path is relative (None: the current one), and that of the path. Of two paths it is the new one.
_PATH = {
    "open": (2, None, 0),
    "openat": (257, 0, 1),
    "creat": (85, None, 0),
    "rename": (82, None, 1),
    "renameat": (264, 2, 3),
    "renameat2": (316, 2, 3),
    "mkdir": (83, None, 0),
    "mkdirat": (258, 0, 1),
    "rmdir": (84, None, 0),
    "unlink": (87, None, 0),
    "unlinkat": (263, 0, 1),
    "link": (86, None, 1),
    "linkat": (265, 2, 3),
    "symlink": (88, None, 1),
    "symlinkat": (266, 1, 2),
}
_NUMBERS = {name: number for name, (number, *_) in [*_DESCRIPTOR.items(), *_PATH.items()]}
_NAMES = {number: name for name, number in _NUMBERS.items()}

WRITES = frozenset({"write", "pwrite64", "writev", "sendfile", "copy_file_range"})
OPENS = frozenset({"open", "openat", "creat"})
_FLUSHES = frozenset({"fsync", "fdatasync", "ftruncate", "fallocate"})
_MAKES = frozenset({"mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat"})
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
# For each kind of fault the calls that can fail so; others are not counted.
CALLS: dict[str, frozenset[str]] = {
    "ENOSPC": WRITES | OPENS | _FLUSHES | _MAKES | _RENAMES,
    "EMFILE": OPENS,
    "EIO": frozenset(_NUMBERS),
    "ENOMEM": frozenset(_NUMBERS) - {"read"},
    "SIGKILL": frozenset(_NUMBERS),
    "none": frozenset(),
}


@dataclass(frozen=True)
class Fault:
    """A fault at one call, or from one call on.

    Attributes:
        kind: The kind of fault, a key of CALLS.
        at: The number of the call, from 1, among those that can fail so.
        lasting: Whether all later calls fail as well.
    """

    kind: str
    at: int = 0
    lasting: bool = False


@dataclass
class Outcome:
    """How a process with a fault ended.

    Attributes:
        status: The exit status, or the negative number of the signal that ended it.
        output: What the process printed.
        struck: The number of calls that could have failed so; below `Fault.at` none has failed.
        calls: The calls on files below the folder, each with its name and path; a renaming has the
            old path and the new one.
    """

    status: int = 0
    output: str = ""
    struck: int = 0
    calls: list[tuple[str, ...]] = field(default_factory=list)


def available():
    """Whether this is Linux 5.6 or newer on x86-64, and no sandbox forbids seccomp."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    action = ctypes.c_uint32(_NOTIFY)
    return _libc.syscall(_SECCOMP, _GET_ACTION_AVAIL, 0, ctypes.byref(action)) == 0


def run_with(fault, folder, operation, but=None):
    """Run an operation in a forked process, with a fault in its calls on files.

    Args:
        fault: The fault.
        folder: Only calls on files below this folder can fail.
        operation: The operation.
        but: A folder below the first one, whose files are left alone.
    """
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if (child := os.fork()) == 0:
        status = 99
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(writing, stream)
            listener = _filter()
            theirs.sendmsg(
                [b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))]
            )
            os.close(listener)
            theirs.close()
            sys.stdout, sys.stderr = (os.fdopen(os.dup(writing), "w", buffering=1) for _ in "12")
            status = _status_of(operation)
        finally:
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)
    theirs.close()
    os.close(writing)
    _, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
    ours.close()
    (listener,) = array.array("i", ancillary[0][2])
    outcome = Outcome()
    try:
        places = str(folder), str(but or "/dev/null")
        output = _serve(listener, reading, child, fault, places, outcome)
    finally:
        os.close(listener)
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    outcome.status = os.waitstatus_to_exitcode(status)
    outcome.output = output.decode(errors="replace")
    return outcome


def _status_of(operation):
    import traceback

    try:
        operation()
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 98
    return 0


def _filter():
    """Let the kernel hold this process's calls on files.

    Returns:
        The descriptor by which another process receives these calls and decides about them.
    """
    # A program of the Berkeley packet filter: load the number of the call, compare it with each of
    # the numbers in turn and jump to the last line if it is equal; else return at the line before.
    load, jump_if_equal, give_back = 0x20, 0x15, 0x06
    numbers = sorted(_NAMES)
    program = [(load, 0, 0, 0)]
    for position, number in enumerate(numbers):
        lines_to_last = len(numbers) - position
        program.append((jump_if_equal, lines_to_last, 0, number))
    program.append((give_back, 0, 0, _ALLOW))
    program.append((give_back, 0, 0, _NOTIFY))
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = int(_libc.syscall(_SECCOMP, _SET_MODE_FILTER, _FILTER_FLAG_NEW_LISTENER, header))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def _serve(listener, output, child, fault, places, outcome):
    """Decide about calls until all processes have ended, and return what they printed.

    Args:
        listener: The descriptor from which calls are received.
        output: The descriptor from which the processes' output is read.
        child: The id of the process, which is that of its group.
        fault: The fault.
        places: The folder whose files it concerns, and the folder below whose files it does not.
        outcome: Is told of each call.
    """
    printed = b""
    has_processes = True
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(output, select.POLLIN)
    while has_processes:
        events = poll.poll(120_000)
        if not events:
            raise AssertionError(f"no end within two minutes; it printed: {printed!r}")
        for descriptor, event in events:
            if descriptor == output and event & select.POLLIN:
                printed += os.read(output, 1 << 16)
            elif descriptor == output:
                poll.unregister(output)
            elif event & select.POLLIN:
                _decide(listener, child, fault, places, outcome)
            else:
                has_processes = False
    while chunk := os.read(output, 1 << 16):
        printed += chunk
    return printed


def _decide(listener, child, fault, places, outcome):
    """Receive one call and let it happen or fail, or kill the processes; see `_serve`."""
    buffer = bytearray(struct.calcsize(_NOTIFICATION))
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError:
        return  # the process has ended
    identity, process, _, number, _, _, *arguments = struct.unpack(_NOTIFICATION, buffer)
    name = _NAMES[number]
    fails = False
    path = _path_of(process, name, arguments)
    if path is not None and _below(path, places[0]) and not _below(path, places[1]):
        old_path = _path_of(process, name, arguments, 0) if name in _RENAMES else None
        outcome.calls.append((name, path) if old_path is None else (name, old_path, path))
        if _can_fail(fault.kind, name, arguments):
            outcome.struck += 1
            is_later = fault.lasting and outcome.struck > fault.at
            fails = outcome.struck == fault.at or is_later
    if fails and fault.kind == "SIGKILL":
        os.killpg(child, signal.SIGKILL)
        return
    if fails:
        error, flags = -getattr(errno, fault.kind), 0
    else:
        error, flags = 0, _CONTINUE
    # Unless the process has ended meanwhile.
    with suppress(OSError):
        fcntl.ioctl(listener, _SEND, struct.pack(_ANSWER, identity, 0, error, flags))


def _below(path, folder):
    return path == folder or path.startswith(f"{folder}/")


def _can_fail(kind, name, arguments):
    """Whether a call can fail so: on a full disk, files can still be opened and read."""
    if name not in CALLS[kind]:
        return False
    if kind != "ENOSPC" or name not in ("open", "openat"):
        return True
    flags = arguments[1 if name == "open" else 2]
    return bool(flags & os.O_CREAT)


def _path_of(process, name, arguments, position=None):
    """Return the path of a call's file; None if the process has ended.

    Args:
        process: The id of the process.
        name: The name of the call.
        arguments: The arguments of the call.
        position: The position of another path of the call, which comes right after its folder if
            the call has one.
    """
    with suppress(OSError):
        if name in _DESCRIPTOR:
            return _target(process, f"fd/{arguments[_DESCRIPTOR[name][1]] & 0xFFFFFFFF}")
        _, at, last = _PATH[name]
        if position is not None and at is not None:
            at, position = position, position + 1
        path = _text(process, arguments[last if position is None else position])
        if path.startswith("/"):
            return path
        base = _CURRENT_FOLDER
        if at is not None:
            base = ctypes.c_int32(arguments[at] & 0xFFFFFFFF).value
        folder = _target(process, "cwd" if base == _CURRENT_FOLDER else f"fd/{base}")
        return os.path.normpath(f"{folder}/{path}")
    return None


def _target(process, link):
    """Return where a link of a process in /proc leads."""
    return str(Path(f"/proc/{process}/{link}").readlink())


def _text(process, address):
    """Return the text at an address in the memory of a process, which ends with a zero byte."""
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        try:
            found = memory.read(4096)
        except OSError:
            # The next page does not exist: read up to the end of this one.
            memory.seek(address)
            found = memory.read(-address % 4096 or 4096)
    return os.fsdecode(found.partition(b"\0")[0])
