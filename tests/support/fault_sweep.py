"""A fault at the first call on files, at the second, and so on, until an operation succeeds."""

import shutil
from pathlib import Path

import syscalls
from bleuprint.runtime.errors import run
from requirements import SECCOMP, needs
from syscalls import Fault

NEEDS_SECCOMP = needs(SECCOMP, syscalls.available())
# Others, such as EROFS, are treated as EIO is.
KINDS = ("SIGKILL", "ENOSPC", "EIO", "EMFILE", "ENOMEM")
# What the one line must say beside the file.
_SAYS = {"ENOSPC": " free in ", "EMFILE": "may open", "ENOMEM": "memory"}


def sweep(folder, operation, before, state, kinds=KINDS, each=1):
    """Try each fault at each point; fails where a promise is broken.

    `before` makes the folder in which `operation` works; `state` is what others would find in it.
    After each fault that is the old state or the new one, an error is one line, and the operation
    then succeeds and leaves nothing else behind. A full disk is tried at a single call, and at all
    calls from one on. `each`: only every n-th point, for long operations.
    """
    place = folder / "place"

    def fresh():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        before(place)

    def go(fault):
        return syscalls.run_with(fault, place, lambda: run(lambda: operation(place)))

    fresh()
    old = state(place)
    clean = go(Fault("none"))
    assert clean.status == 0, clean.output
    new, names = state(place), _names(place)
    for kind in kinds:
        for lasting in (False, True) if kind == "ENOSPC" else (False,):
            at = 1
            while True:
                fresh()
                outcome = go(Fault(kind, at, lasting))
                found, where = state(place), f"{kind} at {at}{' and later' * lasting}"
                check(kind, outcome, where)
                assert found in (old, new), f"{where}: neither old nor new: {found}"
                if outcome.status == 0:
                    assert found == new, f"{where}: succeeded, and is not new: {found}"
                if outcome.struck < at:
                    break
                operation(place)
                assert state(place) == new, f"{where}, then: {state(place)}"
                assert _names(place) == names, f"{where}: left {_names(place) - names}"
                at += each


def contents(place):
    """The files that are not hidden, by name."""
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and ".partial-" not in str(path.relative_to(place))
    }


def unsynced(calls):
    """What a power failure could lose: written files and new entries that had not been flushed.

    A file or folder must have been flushed before it is renamed, and its new folder afterwards.
    """
    dirty: set[str] = set()
    lost = []
    for name, *paths in calls:
        path = paths[-1]
        if name in syscalls.WRITES:
            dirty |= {path, str(Path(path).parent)}
        elif name == "mkdir":
            dirty.add(str(Path(path).parent))
        elif name in ("fsync", "fdatasync"):
            dirty.discard(path)
        elif name.startswith("rename"):
            source = paths[0]
            lost += [one for one in dirty if one == source or one.startswith(f"{source}/")]
            dirty.add(str(Path(path).parent))
    last = next(reversed([paths[-1] for name, *paths in calls if name.startswith("rename")]))
    return lost + [one for one in dirty if one == str(Path(last).parent)]


def check(kind, outcome, where, alone=True):
    """Fail unless it ended well, by the signal, or with one line about the error.

    `alone`: nothing else is printed.
    """
    if kind == "SIGKILL":
        assert outcome.status in (0, -9), f"{where}: {outcome}"
    elif outcome.status:
        assert outcome.status == 1, f"{where}: {outcome}"
        assert "Traceback" not in outcome.output, f"{where}: {outcome.output}"
        rest, _, line = outcome.output.rstrip("\n").rpartition("\n")
        assert line.startswith("bleuprint: error: "), f"{where}: {outcome.output}"
        assert not (alone and rest), f"{where}: {outcome.output}"
        # safetensors calls every file that it cannot open missing
        assert _SAYS.get(kind, "/") in line or "No such file" in line, f"{where}: {line}"


def _names(place):
    return {path.relative_to(place).as_posix() for path in place.rglob("*")}
