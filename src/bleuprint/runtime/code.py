"""The commit of the code, and what git says."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit of the code, with a + if the code differs from it; None outside git."""
    root = Path(__file__).parents[3]
    head = git(root, "rev-parse", "HEAD").decode().strip()
    # not of results, which are in git too
    dirty = git(root, "diff", "--name-only", "HEAD", "--", "src", "stages", "dvc.yaml")
    return head + ("+" if dirty else "") if head else None


def git(root: Path, *arguments: str) -> bytes:
    """The output of a git command; nothing if it fails, as outside a repository."""
    try:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
