"""DVC's repository and dvc.lock, and Snakemake's lock."""

import hashlib
import logging
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from platform import node
from typing import Any

from filelock import Timeout

from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.machine_errors import describe

_HOST = Path("work", "snakemake", "host")
_SNAKEMAKE = FileLock(_HOST.with_suffix(".lock"))  # until this process ends


@contextmanager
def open_repo(root: Path) -> Iterator[Any]:
    """DVC's repository, which waits for its lock; raises UserError, in one line.

    Within, DVC logs nothing and shows no bars of its own, which it does up to the level ERROR.
    """
    from dvc.exceptions import DvcException
    from dvc.logger import set_loggers_level
    from dvc.repo import Repo

    try:
        with set_loggers_level(logging.CRITICAL), Repo(str(root), _wait_for_lock=True) as repo:
            yield repo
    except (DvcException, OSError) as error:
        text = describe(error) or str(error)
        if re.search(r"dvc\.lock'.*(invalid|corrupted|failed)", text):  # cut short by a kill
            text += "; run: git checkout dvc.lock, then make reproduce, which uses DVC's run cache"
        if "not a git repository" in text:
            text += ": clone the project, or run git init"
        raise UserError(text) from error


def changed_stages(root: Path = Path()) -> dict[str, Any]:
    """The stages that `dvc status` finds changed, with their changes. Waits for DVC's lock."""
    from dvc.repo import lock_repo

    with open_repo(root) as repo, lock_repo(repo):
        # the names of stages have a path in front of them if this is not run from the root
        return {name.rpartition(":")[2]: changes for name, changes in repo.status().items()}


def write_lock(stages: Sequence[Any]) -> None:
    """Write stages into dvc.lock; if that is cut short, it stays as it was.

    DVC empties the file before it writes: what is left then has no other stage.
    """
    lock = Path("dvc.lock")
    before = lock.read_bytes() if lock.exists() else None
    try:
        stages[0].dvcfile.dump_stages(stages, update_pipeline=False)
    except BaseException:
        if before is not None:
            lock.write_bytes(before)
        raise


def recorded_stages(root: Path) -> set[str]:
    """The names of the stages in dvc.lock; raises UserError at a conflict in it."""
    if not (lock := root / "dvc.lock").exists():
        return set()
    check_no_conflict(lock)
    text = lock.read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^  (\S+):$", text))  # to parse it takes a quarter of a second


def note_unrecorded(path: Path, root: Path = Path(), name: str = "here") -> None:
    """Say so if a file is not the one that the dvc.lock beside it names; `name`: of `root`."""
    lock = root / "dvc.lock"
    text = lock.read_text(encoding="utf-8", errors="replace") if lock.exists() else ""
    recorded = re.search(rf"- path: {re.escape(str(path))}\n +hash: md5\n +md5: (\w+)", text)
    if recorded and recorded[1] != hashlib.md5((root / path).read_bytes()).hexdigest():
        why = "edited, or not recorded yet (bleuprint record)"
        say(f"{name}: {path} is not the file that dvc.lock names: {why}", "note")


def unlock_after_kill() -> None:
    """Remove Snakemake's lock if the Snakemake that took it was killed on this machine.

    Holds a lock of its own until this process ends, which the kernel releases in any case. Does
    nothing if another Snakemake runs, or if the last one ran on another machine of a cluster.
    """
    locks = Path(".snakemake", "locks")
    _HOST.parent.mkdir(parents=True, exist_ok=True)
    try:
        _SNAKEMAKE.acquire(timeout=0)
    except Timeout:
        return
    if _HOST.exists() and _HOST.read_text() == node():
        shutil.rmtree(locks, ignore_errors=True)
    elif not locks.exists() or not any(locks.iterdir()):
        _HOST.write_text(node())


def check_no_conflict(lock: Path) -> None:
    """Raise UserError if dvc.lock has the marks that git leaves at a conflict of a merge."""
    text = lock.read_text(encoding="utf-8", errors="replace")
    if re.search("(?m)^(<<<<<<<|>>>>>>>) ", text):
        raise UserError(
            f"{lock}: has both sides of a git merge; take one: git checkout --ours dvc.lock, or "
            "--theirs; make reproduce then runs the missing stages"
        )
