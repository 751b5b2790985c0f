"""DVC's repository, and the locks of DVC and Snakemake.

DVC removes a stage's outputs before it runs the stage; without a lock on what Snakemake will write,
`dvc repro` in the same folder would remove what Snakemake has made and not yet recorded. DVC's
locks name processes, so they hold on one machine. Snakemake has a lock of its own against a second
Snakemake anywhere.
"""

import errno
import fcntl
import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from platform import node
from typing import Any

from bleuprint.runtime.errors import UserError, say
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
        text = describe(error) or str(error)
        if re.search(r"dvc\.lock'.*(invalid|corrupted|failed)", text):  # cut short by a kill
            text += "; run: git checkout dvc.lock, then dvc repro, which uses DVC's run cache"
        raise UserError(text) from error


def changed_stages(root: Path = Path()) -> dict[str, Any]:
    """The stages that `dvc status` finds changed, with their changes. Waits for DVC's lock."""
    from dvc.repo import lock_repo

    with open_repo(root) as repo, lock_repo(repo):
        # the names of stages have a path in front of them if this is not run from the root
        return {name.rpartition(":")[2]: changes for name, changes in repo.status().items()}


def recorded_stages(root: Path) -> set[str]:
    """The names of the stages in dvc.lock."""
    lock = root / "dvc.lock"
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return set(re.findall(r"(?m)^  (\S+):$", text))  # to parse it takes a quarter of a second


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


def is_conflict(path: Path) -> bool:
    """Whether a file has the marks that git leaves at a conflict of a merge."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.search("^(<<<<<<<|>>>>>>>) ", text, re.MULTILINE) is not None
