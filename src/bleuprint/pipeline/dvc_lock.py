"""Locks of DVC and Snakemake, and what killed processes leave of them and of dvc.lock.

DVC removes a stage's outputs before it runs the stage; without a lock on what Snakemake will write,
`dvc repro` in the same folder would remove what Snakemake has made and not yet recorded. DVC's
locks name processes, so they hold on one machine. Snakemake has a lock of its own against a second
Snakemake anywhere.
"""

import errno
import fcntl
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from platform import node
from typing import Any

from bleuprint.runtime.code import git
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import whole_file
from bleuprint.runtime.machine_errors import describe
from bleuprint.runtime.yaml_tree import load_yaml

_LOCKS = ExitStack()
_LOCKS_OF_PROCESS = ExitStack()


@contextmanager
def open_repo(root: Path) -> Iterator[Any]:
    """DVC's repository; its errors are raised as UserError, in one line."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(root)) as repo:
            yield repo
    except (DvcException, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.EROFS:
            raise UserError(f"the checkout is read-only: {error.filename}") from error
        raise UserError(describe(error) or str(error)) from error


def changed_stages(root: Path = Path()) -> dict[str, Any]:
    """The stages that `dvc status` finds changed, with their changes. Waits for DVC's lock."""
    from dvc.repo import lock_repo

    with open_repo(root) as repo, lock_repo(repo):
        # the names of stages have a path in front of them if this is not run from the root
        return {name.rpartition(":")[2]: changes for name, changes in repo.status().items()}


def recorded_stages(root: Path) -> set[str]:
    """The names of the stages in dvc.lock."""
    lock = root / "dvc.lock"
    entries = _entries(lock.read_bytes()) if lock.exists() else []
    return {_name(entry).strip(" :") for entry in entries}


def repair(root: Path = Path()) -> None:
    """Repair dvc.lock and DVC's list of locks, if DVC was killed while it wrote one of them.

    The complete entries of dvc.lock are kept, and the others taken from git's HEAD; DVC takes
    stages that are in neither from its run cache. Raises UserError if DVC is running.
    """
    from dvc.lock import make_lock
    from dvc.repo import lock_repo
    from dvc.rwlock import RWLOCK_FILE, RWLOCK_LOCK

    path, locks = root / "dvc.lock", root / ".dvc" / "tmp" / RWLOCK_FILE
    if _is_whole(path) and _is_json(locks):
        return
    with open_repo(root) as repo, lock_repo(repo):
        if not _is_whole(path):  # no other process is writing it
            _repair_lock(path, root)
        hardlink = repo.config["core"].get("hardlink_lock", False)
        guard = str(locks.with_name(RWLOCK_LOCK))
        with make_lock(guard, tmp_dir=repo.tmp_dir, hardlink_lock=hardlink):
            if not _is_json(locks):
                locks.unlink()


def unlock_after_kill(root: Path = Path()) -> None:
    """Remove Snakemake's lock if the Snakemake that took it was killed on this machine.

    Holds a lock of its own until this process ends, which the kernel releases in any case. Does
    nothing if another Snakemake runs, or if the last one ran on another machine of a cluster.
    """
    path, locks, host = root / "work" / "snakemake" / "host", root / ".snakemake/locks", node()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _LOCKS_OF_PROCESS.enter_context(path.open("a+"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    file.seek(0)
    if file.read() == host:
        shutil.rmtree(locks, ignore_errors=True)
    elif not locks.exists() or not any(locks.iterdir()):
        file.truncate(0)
        file.write(host)
        file.flush()


def lock_outputs(paths: Iterable[str], root: Path = Path()) -> None:
    """Lock outputs until `release`; raises UserError if DVC is working on one of them."""
    from dvc.rwlock import rwlock

    with open_repo(root) as repo:
        hardlink = repo.config["core"].get("hardlink_lock", False)
        written = [repo.fs.abspath(str(root / path)) for path in paths]
        lock = rwlock(repo.tmp_dir, repo.fs, "snakemake", [], written, hardlink)
        _LOCKS.enter_context(lock)


def release() -> None:
    """Release the locks; prints a failure and does not raise."""
    from dvc.exceptions import DvcException

    try:
        _LOCKS.close()
    except (DvcException, OSError) as error:
        say(describe(error) or str(error))


def differs(output: Path, root: Path = Path()) -> bool:
    """Whether a file that is an output has changed since DVC recorded it."""
    lock, path = root / "dvc.lock", root / output
    if not lock.exists() or is_conflict(lock):
        return False
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    if digest in lock.read_text(encoding="utf-8", errors="replace"):
        return False  # without parsing it, which takes a fifth of a second
    content = load_yaml(lock)
    if not isinstance(content, dict):  # as DVC leaves it if it is killed
        return False
    stages = (content.get("stages") or {}).values()
    recorded = {out["path"]: out["md5"] for stage in stages for out in stage.get("outs", ())}
    return bool(recorded.get(output.as_posix(), digest) != digest)


def check_no_conflict(lock: Path) -> None:
    """Raise UserError if dvc.lock has the marks of a merge."""
    if is_conflict(lock):
        raise UserError(
            f"{lock}: has both sides of a git merge; take one: git checkout --ours dvc.lock, or "
            "--theirs; dvc repro then runs the missing stages"
        )


def check_whole(lock: Path) -> None:
    """Raise UserError if dvc.lock is not complete, or has the marks of a merge."""
    check_no_conflict(lock)
    if not _is_whole(lock):
        raise UserError(f"{lock}: damaged, as by a killed process; bleuprint reproduce repairs it")


def is_conflict(path: Path) -> bool:
    """Whether a file has the marks that git leaves at a conflict of a merge."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.search("^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE) is not None


def _repair_lock(path: Path, root: Path) -> None:
    """Write dvc.lock without its last entry, which is cut short."""
    kept = _entries(path.read_bytes())[:-1]
    names = {_name(entry) for entry in kept}
    committed = _entries(git(root, "show", "HEAD:./dvc.lock"))
    taken = [entry for entry in committed if _name(entry) not in names]
    if kept or taken:
        with whole_file(path) as partial:
            partial.write_text("".join(("schema: '2.0'\nstages:\n", *kept, *taken)), "utf-8")
    else:
        path.unlink()
    say(
        f"dvc.lock was damaged, as by a killed process: {len(kept)} entries kept, {len(taken)} "
        "taken from git's HEAD; other stages come from DVC's run cache",
        "note",
    )


def _entries(lock: bytes) -> list[str]:
    """The texts of the stages in dvc.lock."""
    return re.split(r"(?m)^(?=  \S)", lock.decode(errors="replace"))[1:]


def _name(entry: str) -> str:
    return entry.partition("\n")[0]


def _is_whole(path: Path) -> bool:
    """Whether dvc.lock is complete, or damaged in another way than by a killed process."""
    from dvc.exceptions import DvcException
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from dvc.utils.serialize import parse_yaml
    from voluptuous import Invalid

    if not path.exists() or is_conflict(path):
        return True
    text = path.read_text(encoding="utf-8", errors="replace")
    entries = _entries(path.read_bytes())
    try:
        # the last one alone: to parse all takes a quarter of a second
        last = parse_yaml(f"schema: '2.0'\nstages:\n{entries[-1]}", path)
        (entry,) = COMPILED_LOCKFILE_SCHEMA(last)["stages"].values()
        out = entry["outs"][-1]
    except (DvcException, Invalid, LookupError, ValueError):
        return False
    return (
        text.endswith("\n") and "size" in out and ("nfiles" in out) == out["md5"].endswith(".dir")
    )


def _is_json(path: Path) -> bool:
    """Whether a file, if it exists, can be parsed."""
    try:
        json.loads(path.read_bytes())
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return True
