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
_PR_SET_NO_NEW_PRIVS, _SECCOMP = 38, 317
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
_NOTIFICATION, _ANSWER = "QIIiIQ6Q", "QqiI"  # struct seccomp_notif, struct seccomp_notif_resp

# x86-64: the number of each call, and where its file is: the position of a descriptor, or of a
# path and of the folder that it is relative to (None: the current one).
_DESCRIPTOR = {
    **{"read": (0, 0), "pread64": (17, 0), "write": (1, 0), "pwrite64": (18, 0), "writev": (20, 0)},
    **{"fsync": (74, 0), "fdatasync": (75, 0), "ftruncate": (77, 0), "fallocate": (285, 0)},
    **{"flock": (73, 0), "getdents64": (217, 0), "sendfile": (40, 0), "copy_file_range": (326, 2)},
}
_PATH = {
    **{"open": (2, None, 0), "openat": (257, 0, 1), "creat": (85, None, 0)},
    **{"rename": (82, None, 1), "renameat": (264, 2, 3), "renameat2": (316, 2, 3)},
    **{"mkdir": (83, None, 0), "mkdirat": (258, 0, 1), "rmdir": (84, None, 0)},
    **{"unlink": (87, None, 0), "unlinkat": (263, 0, 1), "link": (86, None, 1)},
    **{"linkat": (265, 2, 3), "symlink": (88, None, 1), "symlinkat": (266, 1, 2)},
}
_NUMBERS = {name: number for name, (number, *_) in {**_DESCRIPTOR, **_PATH}.items()}
_NAMES = {number: name for name, number in _NUMBERS.items()}

WRITES = frozenset({"write", "pwrite64", "writev", "sendfile", "copy_file_range"})
OPENS = frozenset({"open", "openat", "creat"})
_CREATES = {*WRITES, *OPENS, "fsync", "fdatasync", "ftruncate", "fallocate", "mkdir", "mkdirat"}
_CREATES |= {"rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat"}
# The calls that can fail so; others are not counted.
CALLS: dict[str, frozenset[str]] = {
    "ENOSPC": frozenset(_CREATES),
    "EMFILE": OPENS,
    "EIO": frozenset(_NUMBERS),
    "ENOMEM": frozenset(_NUMBERS) - {"read"},
    "SIGKILL": frozenset(_NUMBERS),
    "none": frozenset(),
}


@dataclass(frozen=True)
class Fault:
    """`kind`, a key of CALLS, at the `at`-th call that can fail so; `lasting`: and later."""

    kind: str
    at: int = 0
    lasting: bool = False


@dataclass
class Outcome:
    """How the process ended, what it printed, and whether the fault came up.

    `calls`: the names and paths of its calls on files below the folder; of a renaming both paths.
    """

    status: int = 0
    output: str = ""
    struck: int = 0
    calls: list[tuple[str, ...]] = field(default_factory=list)


def available():
    """Whether this system has what is needed: Linux 5.6 on x86-64, unless a sandbox forbids it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    action = ctypes.c_uint32(_NOTIFY)
    return _libc.syscall(_SECCOMP, 2, 0, ctypes.byref(action)) == 0


def run_with(fault, folder, operation, but=None):
    """Run `operation` in a forked process, with a fault in its calls on files below `folder`.

    `but`: a folder below it whose files are left alone.
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
    """Hold this process's calls on files; the descriptor by which another decides about them."""
    load, equal, give = 0x20, 0x15, 0x06
    numbers = sorted(_NAMES)
    code = [(load, 0, 0, 0)]
    for position, number in enumerate(numbers):
        code.append((equal, len(numbers) - position, 0, number))
    code += [(give, 0, 0, _ALLOW), (give, 0, 0, _NOTIFY)]
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = int(_libc.syscall(_SECCOMP, 1, 8, header))  # SET_MODE_FILTER, NEW_LISTENER
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def _serve(listener, output, child, fault, places, outcome):
    """Decide about the calls until all processes have ended; what they printed."""
    printed, open_, poll = b"", True, select.poll()
    for descriptor in (listener, output):
        poll.register(descriptor, select.POLLIN)
    while open_:
        for descriptor, event in poll.poll(120_000) or [(-1, 0)]:
            if descriptor == -1:
                raise AssertionError(f"no end within two minutes; it printed: {printed!r}")
            if descriptor == output and event & select.POLLIN:
                printed += os.read(output, 1 << 16)
            elif descriptor == output:
                poll.unregister(output)
            elif event & select.POLLIN:
                _decide(listener, child, fault, places, outcome)
            else:
                open_ = False
    while chunk := os.read(output, 1 << 16):
        printed += chunk
    return printed


def _decide(listener, child, fault, places, outcome):
    buffer = bytearray(struct.calcsize(_NOTIFICATION))
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError:  # it has ended
        return
    identity, process, _, number, _, _, *arguments = struct.unpack(_NOTIFICATION, buffer)
    name = _NAMES[number]
    error, flags = 0, _CONTINUE
    path = _path_of(process, name, arguments)
    if path is not None and _below(path, places[0]) and not _below(path, places[1]):
        of_source = _path_of(process, name, arguments, 0) if name.startswith("rename") else None
        outcome.calls.append((name, path) if of_source is None else (name, of_source, path))
        if _can_fail(fault.kind, name, arguments):
            outcome.struck += 1
            if outcome.struck == fault.at or (fault.lasting and outcome.struck > fault.at):
                if fault.kind == "SIGKILL":
                    os.killpg(child, signal.SIGKILL)
                    return
                error, flags = -getattr(errno, fault.kind), 0
    with suppress(OSError):
        fcntl.ioctl(listener, _SEND, struct.pack(_ANSWER, identity, 0, error, flags))


def _below(path, folder):
    return path == folder or path.startswith(f"{folder}/")


def _can_fail(kind, name, arguments):
    """Whether this call can: a full disk stops no file from being opened to be read."""
    if name not in CALLS[kind]:
        return False
    reads = kind == "ENOSPC" and name in OPENS - {"creat"}
    return not reads or bool(arguments[1 if name == "open" else 2] & os.O_CREAT)


def _path_of(process, name, arguments, position=None):
    """The file of a call; None if the process has ended. `position`: of another path in it."""
    with suppress(OSError):
        if name in _DESCRIPTOR:
            return _target(process, f"fd/{arguments[_DESCRIPTOR[name][1]] & 0xFFFFFFFF}")
        _, at, last = _PATH[name]
        if position is not None and at is not None:
            at, position = position, position + 1
        path = _text(process, arguments[last if position is None else position])
        if path.startswith("/"):
            return path
        base = -100 if at is None else ctypes.c_int32(arguments[at] & 0xFFFFFFFF).value
        folder = _target(process, "cwd" if base == -100 else f"fd/{base}")
        return os.path.normpath(f"{folder}/{path}")
    return None


def _target(process, link):
    return str(Path(f"/proc/{process}/{link}").readlink())


def _text(process, address):
    """The text at an address, of at most 4096 bytes; fewer where its page is the last one."""
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        try:
            found = memory.read(4096)
        except OSError:
            memory.seek(address)
            found = memory.read(-address % 4096 or 4096)
    return os.fsdecode(found.partition(b"\0")[0])
