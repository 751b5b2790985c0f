"""What a run of Snakemake will write, claimed from DVC: nobody else works on it meanwhile.

DVC removes a stage's outputs before it runs it. Without a claim, `dvc repro` in the same folder
would remove what Snakemake has made and not yet recorded. DVC goes by process ids, so it holds on
one machine; against a second Snakemake, wherever it runs, there is Snakemake's own lock.
"""

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from bleuprint.runtime.errors import UserError, say

_CLAIMS = ExitStack()


def claim(paths: Iterable[str], root: Path = Path()) -> None:
    """Claim outputs until `release`; raises UserError where DVC is at work on one of them."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.rwlock import rwlock

    with Repo(str(root)) as repo:
        hardlink = repo.config["core"].get("hardlink_lock", False)
        written = [repo.fs.abspath(str(root / path)) for path in paths]
        claimed = rwlock(repo.tmp_dir, repo.fs, "snakemake", [], written, hardlink)
    try:
        _CLAIMS.enter_context(claimed)
    except (DvcException, OSError) as error:
        # of a lock several lines, the last of which says how to go on if the process is gone
        raise UserError(str(error)) from error


def claim_or_exit(paths: Iterable[str]) -> None:
    """Claim what a run will write, or end it in one line before it begins."""
    try:
        claim(paths)
    except UserError as error:
        say(str(error))
        sys.exit(1)


def release() -> None:
    """Give back what was claimed; where that fails it is told, and holds nobody up."""
    from dvc.exceptions import DvcException

    try:
        _CLAIMS.close()
    except (DvcException, OSError) as error:
        say(str(error))
