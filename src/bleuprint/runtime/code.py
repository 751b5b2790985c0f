"""The code: its commit, and the fingerprint of what decides a stage's outputs."""

import subprocess
from contextlib import suppress
from pathlib import Path

from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import load_yaml


def code_fingerprint(stage: str, root: Path = Path()) -> str:
    """The fingerprint of the package's files and folders that a stage of dvc.yaml depends on.

    Comments, docstrings and formatting do not count.
    """
    path = root / "dvc.yaml"
    entry = load_yaml(path)["stages"][stage]
    dependencies = map(str, entry.get("do", entry)["deps"])
    code = [dependency for dependency in dependencies if dependency.startswith("src/")]
    return fingerprint.of_code(code, root)


def commit() -> str | None:
    """The commit of the code, with a + if the code differs from it; None outside git."""
    root = Path(__file__).parents[3]
    head = git(root, "rev-parse", "HEAD").decode().strip()
    # not of results, which are in git too
    dirty = git(root, "diff", "--name-only", "HEAD", "--", "src", "stages", "dvc.yaml")
    return head + ("+" if dirty else "") if head else None


def check_git_reads(root: Path) -> None:
    """Raise UserError if git refuses to read the repository, as that of another user."""
    command = ["git", "-C", str(root), "rev-parse", "--git-dir"]
    with suppress(OSError):
        refusal = subprocess.run(command, capture_output=True, text=True).stderr
        if "safe.directory" in refusal:
            raise UserError(refusal.removeprefix("fatal: "))


def git(root: Path, *arguments: str) -> bytes:
    """The output of a git command; nothing if it fails, as outside a repository."""
    try:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
