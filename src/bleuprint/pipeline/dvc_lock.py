"""Lock the outputs that a Snakemake run will write in DVC, so that `dvc repro` does not touch them.

DVC removes a stage's outputs before it runs the stage; without a lock, `dvc repro` in the same
folder would remove what Snakemake has made and not yet recorded. DVC's locks name processes, so
they hold on one machine. Snakemake has a lock of its own against a second Snakemake anywhere.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from bleuprint.runtime.errors import UserError, say

_LOCKS = ExitStack()


def lock_outputs(paths: Iterable[str], root: Path = Path()) -> None:
    """Lock outputs until `release`; raises UserError if DVC is working on one of them."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.rwlock import rwlock

    with Repo(str(root)) as repo:
        hardlink = repo.config["core"].get("hardlink_lock", False)
        written = [repo.fs.abspath(str(root / path)) for path in paths]
        lock = rwlock(repo.tmp_dir, repo.fs, "snakemake", [], written, hardlink)
    try:
        _LOCKS.enter_context(lock)
    except (DvcException, OSError) as error:
        raise UserError(str(error)) from error


def release() -> None:
    """Release the locks; prints a failure and does not raise."""
    from dvc.exceptions import DvcException

    try:
        _LOCKS.close()
    except (DvcException, OSError) as error:
        say(str(error))
