"""A fault at the first call on files, at the second, and so on, until an operation succeeds."""

import shutil
from pathlib import Path

import syscalls
from bleuprint.runtime.errors import run_main
from requirements import SECCOMP, needs
from syscalls import Fault

NEEDS_SECCOMP = needs(SECCOMP, syscalls.available())
# The kinds of fault; the program treats others, such as EROFS, like EIO.
KINDS = ("SIGKILL", "ENOSPC", "EIO", "EMFILE", "ENOMEM")
# What the error message must contain besides the file.
_SAYS = {"ENOSPC": " free in ", "EMFILE": "may open", "ENOMEM": "memory"}


def sweep(folder, operation, before, state, kinds=KINDS, each=1):
    """Put a fault into each call on files in turn, and fail where a promise is broken.

    After each fault the folder has its old state or its new one, and an error is one line. The
    operation then succeeds without a fault, and leaves nothing else behind. A full disk is tried
    at a single call, and at all calls from one on.

    Args:
        folder: A folder for the files of all trials.
        operation: The operation; its argument is the folder in which it works.
        before: Makes that folder.
        state: Returns what other programs would find in that folder.
        kinds: The kinds of fault.
        each: Only every n-th call gets a fault, for long operations.
    """
    place = folder / "place"
    _start_anew(place, before)
    old_state = state(place)
    undisturbed = _outcome(Fault("none"), place, operation)
    assert undisturbed.status == 0, undisturbed.output
    new_state = state(place)
    new_names = _names(place)
    for kind in kinds:
        for lasting in (False, True) if kind == "ENOSPC" else (False,):
            call = 1
            while True:
                _start_anew(place, before)
                outcome = _outcome(Fault(kind, call, lasting), place, operation)
                found = state(place)
                where = f"{kind} at call {call}{' and later' if lasting else ''}"
                check(kind, outcome, where)
                assert found in (old_state, new_state), f"{where}: neither old nor new: {found}"
                if outcome.status == 0:
                    assert found == new_state, f"{where}: succeeded, and is not new: {found}"
                has_fewer_calls = outcome.struck < call
                if has_fewer_calls:
                    break
                operation(place)
                assert state(place) == new_state, f"{where}, then: {state(place)}"
                assert _names(place) == new_names, f"{where}: left {_names(place) - new_names}"
                call += each


def _start_anew(place, before):
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    before(place)


def _outcome(fault, place, operation):
    """Run an operation as a command, in a process with a fault."""
    return syscalls.run_with(fault, place, lambda: run_main(lambda: operation(place)))


def contents(place):
    """Return the content of each file in a folder by name, except files that are being written."""
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and ".partial-" not in str(path.relative_to(place))
    }


def unsynced(calls):
    """Return the files and folders that a power failure could lose.

    A written file or a folder with new entries must have been flushed before it is renamed, and the
    folder that gets the new name afterwards.

    Args:
        calls: The calls on files, as in `syscalls.Outcome`.
    """
    unflushed: set[str] = set()
    lost = []
    last_folder = None
    for call in calls:
        folder = str(Path(call.path).parent)
        if call.name in syscalls.WRITES:
            unflushed.update((call.path, folder))
        elif call.name == "mkdir":
            unflushed.add(folder)
        elif call.name in ("fsync", "fdatasync"):
            unflushed.discard(call.path)
        elif call.name.startswith("rename"):
            for path in unflushed:
                if path == call.old_path or path.startswith(f"{call.old_path}/"):
                    lost.append(path)
            unflushed.add(folder)
            last_folder = folder
    assert last_folder is not None, "nothing was renamed"
    if last_folder in unflushed:
        lost.append(last_folder)
    return lost


def check(kind, outcome, where, alone=True):
    """Fail unless a process ended well, by the signal, or with one line about the error.

    Args:
        kind: The kind of the fault.
        outcome: How the process ended.
        where: What the fault was, for messages.
        alone: Whether the process may print nothing else.
    """
    if kind == "SIGKILL":
        assert outcome.status in (0, -9), f"{where}: {outcome}"
        return
    if outcome.status == 0:
        return
    assert outcome.status == 1, f"{where}: {outcome}"
    assert "Traceback" not in outcome.output, f"{where}: {outcome.output}"
    rest, _, line = outcome.output.rstrip("\n").rpartition("\n")
    assert line.startswith("bleuprint: error: "), f"{where}: {outcome.output}"
    if alone:
        assert not rest, f"{where}: {outcome.output}"
    # safetensors calls every file that it cannot open missing.
    names_the_fault = _SAYS.get(kind, "/") in line or "No such file" in line
    assert names_the_fault, f"{where}: {line}"


def _names(place):
    """Return the names of all files and folders in a folder."""
    return {path.relative_to(place).as_posix() for path in place.rglob("*")}
