"""The version of the code: its Git commit, and the versions of libraries that decide results."""

import subprocess
from importlib.metadata import distributions
from pathlib import Path

_LIBRARIES = ("torch", "sacrebleu", "sacremoses", "subword-nmt")


def library_versions() -> str:
    """Return the versions of the libraries that decide results, for the record of a training.

    Returns:
        A text such as `torch 2.13.0, sacrebleu 2.6.0`, without libraries that are not installed.
    """
    versions: dict[str, str] = {}
    for library in _LIBRARIES:
        for distribution in distributions(name=library):
            versions[distribution.name] = distribution.version
    installed_libraries = [library for library in _LIBRARIES if library in versions]
    return ", ".join(f"{library} {versions[library]}" for library in installed_libraries)


def code_commit() -> str | None:
    """Return the Git commit of the code, with a + if the code has been edited since.

    Returns:
        The hash of the commit, such as `3f2c...+`; None if the code is not in a Git repository.
    """
    root = Path(__file__).parents[3]
    commit = git_output(root, "rev-parse", "HEAD").decode().strip()
    if not commit:
        return None
    # Only the code is compared. Results are in Git, too, and running the pipeline changes them.
    changed_files = git_output(
        root, "diff", "--name-only", "HEAD", "--", "src", "stages", "own", "dvc.yaml"
    )
    # A module that was never committed would be missing in a clone. Files in src are not looked at:
    # the build leaves compiled ones there.
    new_files = git_output(root, "ls-files", "--others", "--exclude-standard", "--", "own")
    return f"{commit}+" if changed_files or new_files else commit


def git_output(root: Path, *arguments: str) -> bytes:
    """Return the output of a Git command, such as `git_output(root, "rev-parse", "HEAD")`.

    If the command fails, as in a folder that is not in a Git repository, the output is empty.

    Args:
        root: The folder in which Git runs.
        *arguments: The words after `git`.
    """
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return b""
