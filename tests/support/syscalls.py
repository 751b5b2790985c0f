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
_SET_MODE_FILTER = 1
_GET_ACTION_AVAIL = 2
_FILTER_FLAG_NEW_LISTENER = 8
_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_CONTINUE = 1
_NOTIFY = 0x7FC00000
_ALLOW = 0x7FFF0000
# AT_FDCWD: instead of the descriptor of a folder, the current folder of the process.
_CURRENT_FOLDER = -100
# The layouts of struct seccomp_notif and struct seccomp_notif_resp, for the module `struct`.
_NOTIFICATION = "QIIiIQ6Q"
_ANSWER = "QqiI"
# Bytes in a page of memory; also the longest path that Linux accepts.
_PAGE_SIZE = 4096


@dataclass(frozen=True)
class _SystemCall:
    """A system call on a file, and which of its arguments say what file that is.

    A call names its file by an open descriptor or by a path. The path may be relative to a folder,
    which is a descriptor as well. Positions count the arguments of the call from 0.

    Attributes:
        number: The number of the call on x86-64.
        descriptor: The position of the file's descriptor; None if the call has a path.
        path: The position of the path's address; None if the call has a descriptor. Of two paths,
            it is the one that the call makes.
        folder: The position of the folder to which the path is relative; None if that is always
            the current folder of the process.
        old_path: For calls that rename: the position of the path that the file had before.
        old_folder: The position of the folder to which the old path is relative, like `folder`.
        flags: For calls that open files: the position of the flags, such as O_CREAT.
    """

    number: int
    descriptor: int | None = None
    path: int | None = None
    folder: int | None = None
    old_path: int | None = None
    old_folder: int | None = None
    flags: int | None = None


_SYSTEM_CALLS = {
    "read": _SystemCall(0, descriptor=0),
    "pread64": _SystemCall(17, descriptor=0),
    "write": _SystemCall(1, descriptor=0),
    "pwrite64": _SystemCall(18, descriptor=0),
    "writev": _SystemCall(20, descriptor=0),
    "fsync": _SystemCall(74, descriptor=0),
    "fdatasync": _SystemCall(75, descriptor=0),
    "ftruncate": _SystemCall(77, descriptor=0),
    "fallocate": _SystemCall(285, descriptor=0),
    "flock": _SystemCall(73, descriptor=0),
    "getdents64": _SystemCall(217, descriptor=0),
    # These two copy from one descriptor to another: it is the one to which they write.
    "sendfile": _SystemCall(40, descriptor=0),
    "copy_file_range": _SystemCall(326, descriptor=2),
    "open": _SystemCall(2, path=0, flags=1),
    "openat": _SystemCall(257, folder=0, path=1, flags=2),
    "creat": _SystemCall(85, path=0),
    "rename": _SystemCall(82, old_path=0, path=1),
    "renameat": _SystemCall(264, old_folder=0, old_path=1, folder=2, path=3),
    "renameat2": _SystemCall(316, old_folder=0, old_path=1, folder=2, path=3),
    "mkdir": _SystemCall(83, path=0),
    "mkdirat": _SystemCall(258, folder=0, path=1),
    "rmdir": _SystemCall(84, path=0),
    "unlink": _SystemCall(87, path=0),
    "unlinkat": _SystemCall(263, folder=0, path=1),
    "link": _SystemCall(86, path=1),
    "linkat": _SystemCall(265, folder=2, path=3),
    "symlink": _SystemCall(88, path=1),
    "symlinkat": _SystemCall(266, folder=1, path=2),
}
_NAMES = {call.number: name for name, call in _SYSTEM_CALLS.items()}

WRITES = frozenset({"write", "pwrite64", "writev", "sendfile", "copy_file_range"})
OPENS = frozenset({"open", "openat", "creat"})
_FLUSHES = frozenset({"fsync", "fdatasync", "ftruncate", "fallocate"})
_MAKES = frozenset({"mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat"})
_RENAMES = frozenset({"rename", "renameat", "renameat2"})
# For each kind of fault the calls that can fail so; others are not counted.
CALLS: dict[str, frozenset[str]] = {
    "ENOSPC": WRITES | OPENS | _FLUSHES | _MAKES | _RENAMES,
    "EMFILE": OPENS,
    "EIO": frozenset(_SYSTEM_CALLS),
    "ENOMEM": frozenset(_SYSTEM_CALLS) - {"read"},
    "SIGKILL": frozenset(_SYSTEM_CALLS),
    "none": frozenset(),
}


@dataclass(frozen=True)
class Fault:
    """A fault at one call, or from one call on.

    Attributes:
        kind: The kind of fault, a key of CALLS.
        call_number: The number of the call, from 1, among those that can fail so.
        lasting: Whether all later calls fail as well.
    """

    kind: str
    call_number: int = 0
    lasting: bool = False


@dataclass(frozen=True)
class Call:
    """One call on a file.

    Attributes:
        name: The name of the system call, such as "openat".
        path: The path of the file; of calls that rename, the new one.
        old_path: Of calls that rename, the path before; else None.
    """

    name: str
    path: str
    old_path: str | None = None


@dataclass
class Outcome:
    """How a process with a fault ended.

    Attributes:
        status: The exit status, or the negative number of the signal that ended it.
        output: What the process printed.
        struck: The number of calls that could have failed so; below `Fault.call_number` none has
            failed.
        calls: The calls on files below the folder, in their order.
    """

    status: int = 0
    output: str = ""
    struck: int = 0
    calls: list[Call] = field(default_factory=list)


@dataclass(frozen=True)
class _WatchedFolder:
    """The folder whose files can have the fault.

    Attributes:
        path: The folder.
        excluded: A folder below it whose files are left alone, or None.
    """

    path: str
    excluded: str | None

    def contains(self, file_path):
        """Return whether a file is in the folder and not in the excluded one."""
        if self.excluded is not None and _is_within(file_path, self.excluded):
            return False
        return _is_within(file_path, self.path)


def available():
    """Return whether `run_with` works here: on Linux from 5.6 on x86-64, with seccomp allowed."""
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
    child = os.fork()
    if child == 0:
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
        watched = _WatchedFolder(str(folder), None if but is None else str(but))
        output = _serve(listener, reading, child, fault, watched, outcome)
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
    """Run an operation, and return the exit status of a command that consists of it.

    An error that is not an exit is printed with its traceback, and gives the status 98.
    """
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


def _serve(listener, output, child, fault, watched, outcome):
    """Decide about calls until all processes have ended, and return what they printed.

    Args:
        listener: The descriptor from which calls are received.
        output: The descriptor from which the processes' output is read.
        child: The id of the process, which is that of its group.
        fault: The fault.
        watched: The folder whose files can have the fault.
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
                _decide(listener, child, fault, watched, outcome)
            else:
                has_processes = False
    while chunk := os.read(output, 1 << 16):
        printed += chunk
    return printed


def _decide(listener, child, fault, watched, outcome):
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
    if path is not None and watched.contains(path):
        old_path = _old_path_of(process, name, arguments)
        outcome.calls.append(Call(name, path, old_path))
        if _can_fail(fault.kind, name, arguments):
            outcome.struck += 1
            is_later = fault.lasting and outcome.struck > fault.call_number
            fails = outcome.struck == fault.call_number or is_later
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


def _is_within(path, folder):
    """Return whether a path is a folder or anything below it."""
    return path == folder or path.startswith(f"{folder}/")


def _can_fail(kind, name, arguments):
    """Return whether a call can fail in this way: on a full disk, files can still be read.

    Args:
        kind: The kind of the fault.
        name: The name of the call.
        arguments: The arguments of the call.
    """
    if name not in CALLS[kind]:
        return False
    flags = _SYSTEM_CALLS[name].flags
    if kind != "ENOSPC" or flags is None:
        return True
    makes_a_file = arguments[flags] & os.O_CREAT
    return bool(makes_a_file)


def _path_of(process, name, arguments):
    """Return the path of a call's file; of calls that rename, the new one.

    Args:
        process: The id of the process that calls.
        name: The name of the call.
        arguments: The arguments of the call, each the 64 bits of a register.

    Returns:
        The absolute path; None if the process has ended.
    """
    call = _SYSTEM_CALLS[name]
    try:
        if call.descriptor is not None:
            descriptor = _int_of(arguments[call.descriptor])
            return _target(process, f"fd/{descriptor}")
        return _absolute_path(process, arguments, call.path, call.folder)
    except OSError:
        return None


def _old_path_of(process, name, arguments):
    """Return the path that a call renames; None for other calls, and if the process has ended."""
    call = _SYSTEM_CALLS[name]
    if call.old_path is None:
        return None
    try:
        return _absolute_path(process, arguments, call.old_path, call.old_folder)
    except OSError:
        return None


def _absolute_path(process, arguments, path_position, folder_position):
    """Read a path from the memory of a process, and join it to the folder that it is relative to.

    Args:
        process: The id of the process.
        arguments: The arguments of its call.
        path_position: The position of the path's address among them.
        folder_position: The position of the folder's descriptor; None for the current folder.

    Raises:
        OSError: The process has ended.
    """
    path = _text(process, arguments[path_position])
    if path.startswith("/"):
        return path
    folder = _CURRENT_FOLDER
    if folder_position is not None:
        folder = _int_of(arguments[folder_position])
    link = "cwd" if folder == _CURRENT_FOLDER else f"fd/{folder}"
    return os.path.normpath(f"{_target(process, link)}/{path}")


def _int_of(argument):
    """Return the value of an argument of type int: the lower 32 bits of its register, signed.

    The upper 32 bits have no meaning, so that -100 may come as 0xFFFFFF9C.
    """
    return ctypes.c_int32(argument & 0xFFFFFFFF).value


def _target(process, link):
    """Return where a link of a process in /proc leads."""
    return str(Path(f"/proc/{process}/{link}").readlink())


def _text(process, address):
    """Return the text at an address in the memory of a process, which ends with a zero byte."""
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        try:
            content = memory.read(_PAGE_SIZE)
        except OSError:
            # The next page does not exist: read up to the end of this one.
            bytes_in_page = _PAGE_SIZE - address % _PAGE_SIZE
            memory.seek(address)
            content = memory.read(bytes_in_page)
    text, _, _ = content.partition(b"\0")
    return os.fsdecode(text)
