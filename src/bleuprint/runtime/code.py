"""The commit of the code, what git says, and the versions of the libraries that decide results."""

import subprocess
from importlib.metadata import distributions
from pathlib import Path

_LIBRARIES = ("torch", "sacrebleu", "sacremoses", "subword-nmt")


def library_versions() -> str:
    """torch 2.13.0, sacrebleu 2.6.0, ...: those that are installed."""
    found = {each.name: each.version for name in _LIBRARIES for each in distributions(name=name)}
    return ", ".join(f"{name} {found[name]}" for name in _LIBRARIES if name in found)


def code_commit() -> str | None:
    """The commit of the code, with a + if the code differs from it; None outside git."""
    root = Path(__file__).parents[3]
    head = git_output(root, "rev-parse", "HEAD").decode().strip()
    # not of results, which are in git too
    dirty = git_output(root, "diff", "--name-only", "HEAD", "--", "src", "stages", "dvc.yaml")
    return head + ("+" if dirty else "") if head else None


def git_output(root: Path, *arguments: str) -> bytes:
    """The output of a git command; nothing if it fails, as outside a repository."""
    try:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
